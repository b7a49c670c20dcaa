// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two operands, the second a tensor or a Scalar. The formulas are PyTorch's, in the
// order of operations of ExecuTorch's portable kernels.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/kernels/integer.h"
#include "runtime/kernels/loop.h"
#include "runtime/kernels/map.h"

namespace armdeploy::kernels {
namespace {

// Which type an operator computes in, given the promoted type of its operands.
enum class Rule : uint8_t {
  Same,      // that type; the result tensor must be able to hold it
  Float,     // at least Float
  Predicate  // that type, but the result is a truth value
};

ScalarType common_type(ScalarType promoted, Rule rule) {
  return rule == Rule::Float && !is_floating(promoted) ? ScalarType::Float : promoted;
}

Error apply(KernelContext& context, const MapCall& call, Rule rule, Tensor& out) {
  if (rule != Rule::Predicate && is_floating(call.common) && !is_floating(out.dtype)) {
    return context.fail(Error::InvalidArgument, "a float result for an integer tensor");
  }
  return map(context, call, out);
}

// (Tensor self, Tensor other[, Scalar alpha], out)
Error with_tensor(KernelContext& context, Span<EValue*> args, const MapRows& rows, Rule rule,
                  const EValue* alpha = nullptr, size_t out = 2) {
  const Tensor& self = *args[0]->t;
  const Tensor& other = *args[1]->t;
  const ScalarType common = common_type(promote(self.dtype, other.dtype), rule);
  return apply(context, {rows, common, {&self, &other}, 2, {alpha}, alpha ? size_t{1} : 0}, rule,
               *args[out]->t);
}

// (Tensor self, Scalar other[, Scalar alpha], out)
Error with_scalar(KernelContext& context, Span<EValue*> args, const MapRows& rows, Rule rule,
                  const EValue* alpha = nullptr, size_t out = 2) {
  const Tensor& self = *args[0]->t;
  const ScalarType common = common_type(promote(self.dtype, *args[1]), rule);
  return apply(context, {rows, common, {&self}, 1, {args[1], alpha}, alpha ? size_t{2} : size_t{1}}, rule,
               *args[out]->t);
}

// The same operator with params[0] as its second operand.
template <class Op>
struct Scalar {
  template <class T>
  static T run(T a, const T* params) {
    return Op::run(a, params[0], params + 1);
  }
};

struct Add {
  template <class T>
  static T run(T a, T b, const T* alpha) {
    return wrap_add(a, wrap_multiply(*alpha, b));
  }
};
struct Subtract {
  template <class T>
  static T run(T a, T b, const T* alpha) {
    return wrap_add(a, wrap_negate(wrap_multiply(*alpha, b)));
  }
};
struct ReverseSubtract {
  template <class T>
  static T run(T a, T b, const T* alpha) {
    return Subtract::run(b, a, alpha);
  }
};
struct Multiply {
  template <class T>
  static T run(T a, T b, const T*) {
    return wrap_multiply(a, b);
  }
};
struct Divide {
  template <class T>
  static T run(T a, T b, const T*) {
    return a / b;
  }
};

// Integer division: zero divisors are refused before the loop; -1 is apart since INT64_MIN / -1 overflows.
struct DivideTruncate {
  template <class T>
  static T run(T a, T b, const T*) {
    if constexpr (std::is_integral_v<T>) {
      return b == -1 ? wrap_negate(a) : a / b;
    } else {
      return std::trunc(a / b);
    }
  }
};
struct Fmod {
  template <class T>
  static T run(T a, T b, const T*) {
    if constexpr (std::is_integral_v<T>) {
      return b == -1 ? 0 : a % b;
    } else {
      return std::fmod(a, b);
    }
  }
};
// ExecuTorch's kernel takes the sign of the divisor for floats only, and computes doubles in float.
struct Remainder {
  template <class T>
  static T run(T a, T b, const T* params) {
    if constexpr (std::is_same_v<T, double>) {
      const float single = 0;
      return static_cast<double>(run(static_cast<float>(a), static_cast<float>(b), &single));
    } else {
      const T rest = Fmod::run(a, b, params);
      return !std::is_integral_v<T> && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
};
struct FloorDivide {
  template <class T>
  static T run(T a, T b, const T* params) {
    const T rest = b == 0 ? T(0) : Fmod::run(a, b, params);
    const T lower = rest != 0 && (rest < 0) != (b < 0) ? T(1) : T(0);
    if constexpr (std::is_integral_v<T>) {
      return DivideTruncate::run(a, b, params) - lower;
    } else {
      if (b == 0) return std::copysign(std::numeric_limits<T>::infinity(), a);
      const T quotient = (a - rest) / b;
      return lower != 0 ? quotient - 1 : quotient;
    }
  }
};

struct Maximum {
  template <class T>
  static T run(T a, T b, const T*) {
    return a != a || !(a < b || b != b) ? a : b;  // NaN wins; of two zeros the first
  }
};
struct Minimum {
  template <class T>
  static T run(T a, T b, const T*) {
    return a != a || !(b < a || b != b) ? a : b;
  }
};
struct Power {
  template <class T>
  static T run(T a, T b, const T*) {
    return std::pow(a, b);
  }
};
struct ReversePower {
  template <class T>
  static T run(T a, T b, const T*) {
    return std::pow(b, a);
  }
};
struct Atan2 {
  template <class T>
  static T run(T a, T b, const T*) {
    return std::atan2(a, b);
  }
};

#define OPERATOR(Name, expression)       \
  struct Name {                          \
    template <class T>                   \
    static T run(T a, T b, const T*) {   \
      return static_cast<T>(expression); \
    }                                    \
  };
OPERATOR(Equal, a == b)
OPERATOR(NotEqual, a != b)
OPERATOR(Less, a < b)
OPERATOR(LessEqual, a <= b)
OPERATOR(Greater, a > b)
OPERATOR(GreaterEqual, a >= b)
OPERATOR(LogicalAnd, a != 0 && b != 0)
OPERATOR(LogicalOr, a != 0 || b != 0)
OPERATOR(LogicalXor, (a != 0) != (b != 0))
OPERATOR(BitwiseAnd, (a & b))
OPERATOR(BitwiseOr, a | b)
OPERATOR(BitwiseXor, a ^ b)
OPERATOR(ShiftLeft, (b < 0 || b > 63) ? 0 : (static_cast<uint64_t>(a) << b))
OPERATOR(ShiftRight, a >> (b < 0 || b > 63 ? 63 : b))
#undef OPERATOR

struct ZeroSearch {
  ScalarType type;
  bool found;
};

void find_zero(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  ZeroSearch& search = *static_cast<ZeroSearch*>(context);
  for (size_t i = 0; i < count; i++) {
    search.found |= load<int64_t>(search.type, data[0] + static_cast<ptrdiff_t>(i) * stride[0]) == 0;
  }
}

bool has_zero(const Tensor& tensor) {
  const View view(tensor);
  ZeroSearch search = {tensor.dtype, false};
  Loop loop;
  if (loop.plan(&view, 1)) loop.run(find_zero, &search);
  return search.found;
}

// Integers cannot be divided by zero: InvalidArgument.
Error check_divisor(KernelContext& context, const Tensor& self, const EValue& divisor) {
  if (is_floating(self.dtype)) return Error::Ok;
  const bool tensor = divisor.is_tensor();
  if (tensor ? is_floating(divisor.t->dtype) : divisor.tag == Tag::Double) return Error::Ok;
  const bool zero = tensor ? has_zero(*divisor.t) : divisor.to_int() == 0;
  return zero ? context.fail(Error::InvalidArgument, "division of an integer by zero") : Error::Ok;
}

Error with_any(KernelContext& context, Span<EValue*> args, const MapRows& tensor_rows,
               const MapRows& scalar_rows, Rule rule, size_t out = 2) {
  return args[1]->is_tensor() ? with_tensor(context, args, tensor_rows, rule, nullptr, out)
                              : with_scalar(context, args, scalar_rows, rule, nullptr, out);
}

// An operator on integers that must not meet a zero divisor.
template <class Op>
Error divide(KernelContext& context, Span<EValue*> args, size_t out = 2) {
  ARMDEPLOY_TRY(check_divisor(context, *args[0]->t, *args[1]));
  return with_any(context, args, any_rows<Op, 2>, any_rows<Scalar<Op>, 1>, Rule::Same, out);
}

template <class Op>
Error divide_floats(KernelContext& context, Span<EValue*> args, size_t out = 2) {
  return with_any(context, args, float_rows<Op, 2>, float_rows<Scalar<Op>, 1>, Rule::Float, out);
}

Error divide_by_mode(KernelContext& context, Span<EValue*> args) {
  const EValue& mode = *args[2];
  if (mode.is_none()) return divide_floats<Divide>(context, args, 3);
  if (strcmp(mode.s.data, "trunc") == 0) return divide<DivideTruncate>(context, args, 3);
  if (strcmp(mode.s.data, "floor") == 0) return divide<FloorDivide>(context, args, 3);
  return context.fail(Error::InvalidArgument, "rounding mode '%s'", mode.s.data);
}

// Integer powers are computed in double, as the portable kernel does.
Error power(KernelContext& context, const Tensor* const* inputs, size_t count, const EValue* scalar,
            ScalarType promoted, const MapRows& rows, Tensor& out) {
  const bool integer = !is_floating(promoted);
  if (!integer && !is_floating(out.dtype)) return context.fail(Error::InvalidArgument, "a float result");
  const ScalarType common = integer ? ScalarType::Double : promoted;
  return map(context, {rows, common, {inputs[0], inputs[count - 1]}, count, {scalar}, scalar ? size_t{1} : 0},
             out);
}

}  // namespace

#define BOTH(stem, Op, rows, rule)                                                       \
  KERNEL(aten_##stem##_Tensor_out, "TTT", with_tensor(context, args, rows<Op, 2>, rule)) \
  KERNEL(aten_##stem##_Scalar_out, "TST", with_scalar(context, args, rows<Scalar<Op>, 1>, rule))

KERNEL(aten_add_out, "TTST", with_tensor(context, args, any_rows<Add, 2>, Rule::Same, args[2], 3))
KERNEL(aten_sub_out, "TTST", with_tensor(context, args, any_rows<Subtract, 2>, Rule::Same, args[2], 3))
KERNEL(aten_mul_out, "TTT", with_tensor(context, args, any_rows<Multiply, 2>, Rule::Same))
KERNEL(aten_div_out, "TTT", divide_floats<Divide>(context, args))
KERNEL(aten_add_Scalar_out, "TSST",
       with_scalar(context, args, any_rows<Scalar<Add>, 1>, Rule::Same, args[2], 3))
KERNEL(aten_sub_Scalar_out, "TSST",
       with_scalar(context, args, any_rows<Scalar<Subtract>, 1>, Rule::Same, args[2], 3))
KERNEL(aten_rsub_Scalar_out, "TSST",
       with_scalar(context, args, any_rows<Scalar<ReverseSubtract>, 1>, Rule::Same, args[2], 3))
KERNEL(aten_mul_Scalar_out, "TST", with_scalar(context, args, any_rows<Scalar<Multiply>, 1>, Rule::Same))
KERNEL(aten_div_Scalar_out, "TST", divide_floats<Divide>(context, args))
KERNEL(aten_div_out_mode, "TTaT", divide_by_mode(context, args))
KERNEL(aten_div_Scalar_mode_out, "TSaT", divide_by_mode(context, args))
KERNEL(aten_floor_divide_out, "TTT", divide<FloorDivide>(context, args))
KERNEL(aten_fmod_Tensor_out, "TTT", divide<Fmod>(context, args))
KERNEL(aten_fmod_Scalar_out, "TST", divide<Fmod>(context, args))
KERNEL(aten_remainder_Tensor_out, "TTT", divide<Remainder>(context, args))
KERNEL(aten_remainder_Scalar_out, "TST", divide<Remainder>(context, args))
KERNEL(aten_maximum_out, "TTT", with_tensor(context, args, any_rows<Maximum, 2>, Rule::Same))
KERNEL(aten_minimum_out, "TTT", with_tensor(context, args, any_rows<Minimum, 2>, Rule::Same))
KERNEL(aten_atan2_out, "TTT", with_tensor(context, args, float_rows<Atan2, 2>, Rule::Float))
BOTH(eq, Equal, any_rows, Rule::Predicate)
BOTH(ne, NotEqual, any_rows, Rule::Predicate)
BOTH(lt, Less, any_rows, Rule::Predicate)
BOTH(le, LessEqual, any_rows, Rule::Predicate)
BOTH(gt, Greater, any_rows, Rule::Predicate)
BOTH(ge, GreaterEqual, any_rows, Rule::Predicate)
BOTH(bitwise_and, BitwiseAnd, integer_rows, Rule::Same)
BOTH(bitwise_or, BitwiseOr, integer_rows, Rule::Same)
BOTH(bitwise_xor, BitwiseXor, integer_rows, Rule::Same)
KERNEL(aten_bitwise_left_shift_Tensor_out, "TTT",
       with_tensor(context, args, integer_rows<ShiftLeft, 2>, Rule::Same))
KERNEL(aten_bitwise_right_shift_Tensor_out, "TTT",
       with_tensor(context, args, integer_rows<ShiftRight, 2>, Rule::Same))
KERNEL(aten_bitwise_left_shift_Tensor_Scalar_out, "TST",
       with_scalar(context, args, integer_rows<Scalar<ShiftLeft>, 1>, Rule::Same))
KERNEL(aten_bitwise_right_shift_Tensor_Scalar_out, "TST",
       with_scalar(context, args, integer_rows<Scalar<ShiftRight>, 1>, Rule::Same))
KERNEL(aten_logical_and_out, "TTT", with_tensor(context, args, any_rows<LogicalAnd, 2>, Rule::Predicate))
KERNEL(aten_logical_or_out, "TTT", with_tensor(context, args, any_rows<LogicalOr, 2>, Rule::Predicate))
KERNEL(aten_logical_xor_out, "TTT", with_tensor(context, args, any_rows<LogicalXor, 2>, Rule::Predicate))

Error aten_pow_Tensor_Tensor_out(KernelContext& context, Span<EValue*> args) {
  ARMDEPLOY_TRY(check_args(context, args, "TTT"));
  const Tensor* inputs[] = {args[0]->t, args[1]->t};
  const ScalarType promoted = promote(args[0]->t->dtype, args[1]->t->dtype);
  return power(context, inputs, 2, nullptr, promoted, float_rows<Power, 2>, *args[2]->t);
}

Error aten_pow_Tensor_Scalar_out(KernelContext& context, Span<EValue*> args) {
  ARMDEPLOY_TRY(check_args(context, args, "TST"));
  const Tensor* inputs[] = {args[0]->t};
  const ScalarType promoted = promote(args[0]->t->dtype, *args[1]);
  return power(context, inputs, 1, args[1], promoted, float_rows<Scalar<Power>, 1>, *args[2]->t);
}

Error aten_pow_Scalar_out(KernelContext& context, Span<EValue*> args) {
  ARMDEPLOY_TRY(check_args(context, args, "STT"));
  const Tensor* inputs[] = {args[1]->t};
  const ScalarType promoted = promote(args[1]->t->dtype, *args[0]);
  return power(context, inputs, 1, args[0], promoted, float_rows<Scalar<ReversePower>, 1>, *args[2]->t);
}

}  // namespace armdeploy::kernels
