// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/bundle.h"

#include "runtime/core/schema_bundle.h"

namespace armdeploy {
namespace {

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// IEEE 754 binary16, widened without loss.
float from_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = half >> 10 & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return from_bits(sign | 0x7F800000U | fraction << 13);
  if (exponent != 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const float value = static_cast<float>(fraction) / 16777216.0F;  // subnormal: fraction * 2^-24
  return sign ? -value : value;
}

bool is_floating(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::BFloat16 || type == ScalarType::Float ||
         type == ScalarType::Double;
}

template <class T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double element(ScalarType type, const uint8_t* at) {
  switch (type) {
    case ScalarType::Char: return read<int8_t>(at);
    case ScalarType::Short: return read<int16_t>(at);
    case ScalarType::Int: return read<int32_t>(at);
    case ScalarType::Long: return static_cast<double>(read<int64_t>(at));
    case ScalarType::UInt16: return read<uint16_t>(at);
    case ScalarType::UInt32: return read<uint32_t>(at);
    case ScalarType::UInt64: return static_cast<double>(read<uint64_t>(at));
    case ScalarType::Half: return static_cast<double>(from_half(read<uint16_t>(at)));
    case ScalarType::BFloat16: return static_cast<double>(from_bits(uint32_t{read<uint16_t>(at)} << 16));
    case ScalarType::Float: return static_cast<double>(read<float>(at));
    case ScalarType::Double: return read<double>(at);
    default: return *at;
  }
}

double magnitude(double value) { return value < 0 ? -value : value; }

struct Tolerance {
  double relative;
  double absolute;
};

void compare_element(ScalarType type, const uint8_t* actual, const uint8_t* expected, Tolerance tolerance,
                     Bundle::Comparison* out) {
  const double a = element(type, actual);
  const double b = element(type, expected);
  const double difference = magnitude(a - b);
  bool same = std::memcmp(actual, expected, element_size(type)) == 0;
  if (is_floating(type)) {
    const bool both_nan = a != a && b != b;
    same = both_nan || a == b || difference <= tolerance.absolute + magnitude(tolerance.relative * b);
  }
  ++out->compared;
  if (!same) ++out->mismatched;
  if (!same && difference > out->largest) out->largest = difference;
}

bool same_shape(const Tensor& tensor, const fb_bundle::Tensor& bundled) {
  if (static_cast<int>(tensor.dtype) != static_cast<int>(bundled.scalar_type())) return false;
  if (size_of(bundled.sizes()) != tensor.rank || size_of(bundled.dim_order()) != tensor.rank) return false;
  if (size_of(bundled.data()) != tensor.nbytes()) return false;
  for (unsigned i = 0; i < tensor.rank; ++i) {
    if (bundled.sizes()->Get(i) != tensor.sizes[i] || bundled.dim_order()->Get(i) != tensor.dim_order[i])
      return false;
  }
  return true;
}

Error compare_tensor(const Tensor& actual, const fb_bundle::Tensor& expected, Tolerance tolerance,
                     Bundle::Comparison* out) {
  if (!same_shape(actual, expected) || (!actual.data && actual.capacity != 0)) {
    return fail(Error::InvalidArgument, "bundle: expected output has another type or shape");
  }
  const size_t size = element_size(actual.dtype);
  const size_t count = actual.numel();
  for (size_t i = 0; i < count; ++i) {
    compare_element(actual.dtype, actual.as<const uint8_t>() + i * size, expected.data()->data() + i * size,
                    tolerance, out);
  }
  return Error::Ok;
}

template <class T>
void compare_scalar(ScalarType type, T actual, T expected, Tolerance tolerance, Bundle::Comparison* out) {
  compare_element(type, reinterpret_cast<const uint8_t*>(&actual),
                  reinterpret_cast<const uint8_t*>(&expected), tolerance, out);
}

Error compare_value(const EValue& actual, const fb_bundle::Value& expected, Tolerance tolerance,
                    Bundle::Comparison* out) {
  const void* value = expected.val();
  const auto type = value ? expected.val_type() : fb_bundle::ValueUnion::NONE;
  if (type == fb_bundle::ValueUnion::Tensor && actual.is_tensor()) {
    return compare_tensor(*actual.t, *static_cast<const fb_bundle::Tensor*>(value), tolerance, out);
  }
  if (type == fb_bundle::ValueUnion::Int && actual.tag == Tag::Int) {
    compare_scalar(ScalarType::Long, actual.i, static_cast<const fb_bundle::Int*>(value)->int_val(),
                   tolerance, out);
  } else if (type == fb_bundle::ValueUnion::Double && actual.tag == Tag::Double) {
    compare_scalar(ScalarType::Double, actual.d, static_cast<const fb_bundle::Double*>(value)->double_val(),
                   tolerance, out);
  } else if (type == fb_bundle::ValueUnion::Bool && actual.tag == Tag::Bool) {
    compare_scalar(ScalarType::Bool, actual.b, static_cast<const fb_bundle::Bool*>(value)->bool_val(),
                   tolerance, out);
  } else {
    return fail(Error::InvalidArgument, "bundle: expected output is of another kind");
  }
  return Error::Ok;
}

template <class T>
Error set_scalar(Method& method, size_t index, T value) {
  return method.set_input(index, {reinterpret_cast<const uint8_t*>(&value), sizeof value});
}

Error set_value(Method& method, size_t index, const fb_bundle::Value& source) {
  const void* value = source.val();
  switch (value ? source.val_type() : fb_bundle::ValueUnion::NONE) {
    case fb_bundle::ValueUnion::Tensor: {
      const auto& tensor = *static_cast<const fb_bundle::Tensor*>(value);
      if (!tensor.sizes() || !tensor.data()) break;
      return method.set_input(index, static_cast<ScalarType>(tensor.scalar_type()),
                              {tensor.sizes()->data(), tensor.sizes()->size()},
                              {tensor.data()->data(), tensor.data()->size()});
    }
    case fb_bundle::ValueUnion::Int:
      return set_scalar(method, index, static_cast<const fb_bundle::Int*>(value)->int_val());
    case fb_bundle::ValueUnion::Double:
      return set_scalar(method, index, static_cast<const fb_bundle::Double*>(value)->double_val());
    case fb_bundle::ValueUnion::Bool:
      return set_scalar(method, index, static_cast<const fb_bundle::Bool*>(value)->bool_val());
    default: break;
  }
  return fail(Error::InvalidProgram, "bundle: input %zu has no value", index);
}

}  // namespace

bool Bundle::recognise(Span<const uint8_t> file) {
  return file.size >= 8 && std::memcmp(file.data + 4, fb_bundle::BundledProgramIdentifier(), 4) == 0;
}

Error Bundle::load(Span<const uint8_t> file, Bundle* out) {
  if (!recognise(file) || file.size >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return fail(Error::InvalidProgram, "bundle: not a .bpte of schema %s",
                fb_bundle::BundledProgramIdentifier());
  }
  flatbuffers::Verifier verifier(file.data, file.size);
  if (!fb_bundle::VerifyBundledProgramBuffer(verifier)) {
    return fail(Error::InvalidProgram, "bundle: truncated or damaged");
  }
  const fb_bundle::BundledProgram& flat = *fb_bundle::GetBundledProgram(file.data);
  if (!flat.program()) return fail(Error::InvalidProgram, "bundle: no program in it");
  out->flat_ = &flat;
  out->program_ = {flat.program()->data(), flat.program()->size()};
  return Error::Ok;
}

const fb_bundle::BundledMethodTestSuite* Bundle::suite(const char* method) const {
  for (unsigned i = 0; i < size_of(flat_->method_test_suites()); ++i) {
    const fb_bundle::BundledMethodTestSuite* found = flat_->method_test_suites()->Get(i);
    if (found->method_name() && std::strcmp(found->method_name()->c_str(), method) == 0) return found;
  }
  return nullptr;
}

size_t Bundle::case_count(const char* method) const {
  const fb_bundle::BundledMethodTestSuite* found = suite(method);
  return found ? size_of(found->test_cases()) : 0;
}

Error Bundle::find(const char* method, size_t index, const fb_bundle::BundledMethodTestCase** out) const {
  if (index >= case_count(method)) {
    return fail(Error::NotFound, "bundle: method %s has %zu test cases, not %zu", method, case_count(method),
                index + 1);
  }
  *out = suite(method)->test_cases()->Get(static_cast<unsigned>(index));
  return Error::Ok;
}

Error Bundle::set_inputs(Method& method, size_t index) const {
  const fb_bundle::BundledMethodTestCase* test = nullptr;
  Error error = find(method.name(), index, &test);
  if (error != Error::Ok) return error;
  if (size_of(test->inputs()) != method.input_count()) {
    return fail(Error::InvalidArgument, "bundle: %zu inputs, the method takes %zu", size_of(test->inputs()),
                method.input_count());
  }
  for (unsigned i = 0; error == Error::Ok && i < method.input_count(); ++i) {
    error = set_value(method, i, *test->inputs()->Get(i));
  }
  return error;
}

Error Bundle::compare(const Method& method, size_t index, double rtol, double atol, Comparison* out) const {
  const fb_bundle::BundledMethodTestCase* test = nullptr;
  Error error = find(method.name(), index, &test);
  if (error != Error::Ok) return error;
  if (size_of(test->expected_outputs()) != method.output_count()) {
    return fail(Error::InvalidArgument, "bundle: %zu expected outputs, the method has %zu",
                size_of(test->expected_outputs()), method.output_count());
  }
  *out = {false, 0, 0, 0};
  for (unsigned i = 0; error == Error::Ok && i < method.output_count(); ++i) {
    error = compare_value(method.output(i), *test->expected_outputs()->Get(i), {rtol, atol}, out);
  }
  out->pass = error == Error::Ok && out->mismatched == 0;
  return error;
}

}  // namespace armdeploy
