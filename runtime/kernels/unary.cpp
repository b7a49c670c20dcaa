// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one tensor, with or without scalars; where and masked_fill. The formulas are
// PyTorch's, in the order of operations of ExecuTorch's portable kernels.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/kernels/integer.h"
#include "runtime/kernels/map.h"

namespace armdeploy::kernels {
namespace {

// Same type in and out, except that a narrower result than the input's category is refused.
Error keep(KernelContext& context, Span<EValue*> args, const MapRows& rows, size_t params, size_t out) {
  const Tensor& self = *args[0]->t;
  Tensor& result = *args[out]->t;
  if (is_floating(self.dtype) && !is_floating(result.dtype)) {
    return context.fail(Error::InvalidArgument, "a float result for an integer tensor");
  }
  MapCall call = {rows, self.dtype, {&self}, 1, {}, params};
  for (size_t k = 0; k < params; k++) call.params[k] = args[1 + k];
  return map(context, call, result);
}

// Integers are converted to Float; so the result is a float.
Error to_float(KernelContext& context, Span<EValue*> args, const MapRows& rows, size_t params, size_t out) {
  const Tensor& self = *args[0]->t;
  Tensor& result = *args[out]->t;
  if (!is_floating(result.dtype))
    return context.fail(Error::InvalidArgument, "a float result for an integer tensor");
  MapCall call = {rows, is_floating(self.dtype) ? self.dtype : ScalarType::Float, {&self}, 1, {}, params};
  for (size_t k = 0; k < params; k++) call.params[k] = args[1 + k];
  return map(context, call, result);
}

Error predicate(KernelContext& context, Span<EValue*> args, const MapRows& rows) {
  const Tensor& self = *args[0]->t;
  return map(context, {rows, self.dtype, {&self}, 1, {}, 0}, *args[1]->t);
}

struct Negate {
  template <class T>
  static T run(T x, const T*) {
    return wrap_negate(x);
  }
};
struct Absolute {
  template <class T>
  static T run(T x, const T*) {
    return x < 0 ? wrap_negate(x) : x;  // -0 stays
  }
};

#define OPERATOR(Name, expression)                        \
  struct Name {                                           \
    template <class T>                                    \
    static T run(T x, [[maybe_unused]] const T* params) { \
      return static_cast<T>(expression);                  \
    }                                                     \
  };
OPERATOR(Sign, x != x ? x : T((x > 0) - (x < 0)))
OPERATOR(Relu, x < 0 ? T(0) : x)
OPERATOR(BitwiseNot, ~x)
OPERATOR(LogicalNot, x == 0)
OPERATOR(IsNan, x != x)
OPERATOR(IsInf, !std::is_integral_v<T> &&
                    (x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity()))
OPERATOR(Identity, x)
OPERATOR(Floor, std::floor(x))
OPERATOR(Ceil, std::ceil(x))
OPERATOR(Truncate, std::trunc(x))
OPERATOR(Round, std::nearbyint(x))
OPERATOR(Reciprocal, T(1) / x)
OPERATOR(SquareRoot, std::sqrt(x))
OPERATOR(ReverseSquareRoot, T(1) / std::sqrt(x))
OPERATOR(Sigmoid, T(1) / (T(1) + std::exp(-x)))
OPERATOR(Exp, std::exp(x))
OPERATOR(Expm1, std::expm1(x))
OPERATOR(Log, std::log(x))
OPERATOR(Log2, std::log2(x))
OPERATOR(Log10, std::log10(x))
OPERATOR(Log1p, std::log1p(x))
OPERATOR(Erf, std::erf(x))
OPERATOR(Sin, std::sin(x))
OPERATOR(Cos, std::cos(x))
OPERATOR(Tan, std::tan(x))
OPERATOR(Asin, std::asin(x))
OPERATOR(Acos, std::acos(x))
OPERATOR(Atan, std::atan(x))
OPERATOR(Sinh, std::sinh(x))
OPERATOR(Cosh, std::cosh(x))
OPERATOR(Tanh, std::tanh(x))
OPERATOR(Asinh, std::asinh(x))
OPERATOR(Acosh, std::acosh(x))
OPERATOR(Atanh, std::atanh(x))
OPERATOR(LeakyRelu, x >= 0 ? x : x * params[0])
OPERATOR(Elu, x <= 0 ? std::expm1(x * params[2]) * (params[0] * params[1]) : x * params[1])
OPERATOR(Logit, std::log(x / (T(1) - x)))
OPERATOR(GeluErf, T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))))
OPERATOR(GeluTanh,
         T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * (x * x * x)))))
#undef OPERATOR

// The upper bound wins when the bounds cross.
struct Clamp {
  template <class T>
  static T run(T x, const T* params) {
    const T raised = x < params[0] ? params[0] : x;
    return raised > params[1] ? params[1] : raised;
  }
};

struct LogitClamped {
  template <class T>
  static T run(T x, const T* params) {
    const T low = params[0];
    const T high = T(1) - low;
    return Logit::run(x < low ? low : x > high ? high : x, params);
  }
};

struct ClampLow {
  template <class T>
  static T run(T x, T low, const T*) {
    return x < low || low != low ? low : x;
  }
};
struct ClampHigh {
  template <class T>
  static T run(T x, T high, const T*) {
    return x > high || high != high ? high : x;
  }
};
struct ClampBetween {
  template <class T>
  static T run(T x, T low, T high, const T* params) {
    return ClampHigh::run(ClampLow::run(x, low, params), high, params);
  }
};

struct Where {
  template <class T>
  static T run(T condition, T a, T b, const T*) {
    return condition != 0 ? a : b;
  }
};

struct MaskedFill {
  template <class T>
  static T run(T x, T mask, const T* value) {
    return mask != 0 ? *value : x;
  }
};

// Rounding leaves integers alone.
template <class Op>
constexpr MapRows rounding_rows = {map_row<Identity, int64_t, 1>, map_row<Op, float, 1>,
                                   map_row<Op, double, 1>};

EValue scalar(double value) {
  EValue result;
  result.tag = Tag::Double;
  result.d = value;
  return result;
}

EValue scalar(int64_t value) {
  EValue result;
  result.tag = Tag::Int;
  result.i = value;
  return result;
}

// The type's own limits stand for a bound that is not given.
Error clamp(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  Tensor& out = *args[3]->t;
  ScalarType common = self.dtype;
  for (size_t k = 1; k <= 2; k++) {
    if (!args[k]->is_none()) common = promote(common, *args[k]);
  }
  if (is_floating(common) && !is_floating(out.dtype))
    return context.fail(Error::InvalidArgument, "a float result");
  const bool real = is_floating(common);
  const double infinity = std::numeric_limits<double>::infinity();
  const EValue lowest = real ? scalar(-infinity) : scalar(INT64_MIN);
  const EValue highest = real ? scalar(infinity) : scalar(INT64_MAX);
  // An open integer bound must not be wrapped into a narrower type.
  const bool open = !real && (args[1]->is_none() || args[2]->is_none());
  const EValue* low = args[1]->is_none() ? &lowest : args[1];
  const EValue* high = args[2]->is_none() ? &highest : args[2];
  return map(context, {any_rows<Clamp, 1>, open ? ScalarType::Long : common, {&self}, 1, {low, high}, 2},
             out);
}

Error clamp_by_tensors(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const Tensor* low = args[1]->is_none() ? nullptr : args[1]->t;
  const Tensor* high = args[2]->is_none() ? nullptr : args[2]->t;
  Tensor& out = *args[3]->t;
  ScalarType common = self.dtype;
  if (low) common = promote(common, low->dtype);
  if (high) common = promote(common, high->dtype);
  if (is_floating(common) && !is_floating(out.dtype))
    return context.fail(Error::InvalidArgument, "a float result");
  if (low && high)
    return map(context, {any_rows<ClampBetween, 3>, common, {&self, low, high}, 3, {}, 0}, out);
  if (low) return map(context, {any_rows<ClampLow, 2>, common, {&self, low}, 2, {}, 0}, out);
  if (high) return map(context, {any_rows<ClampHigh, 2>, common, {&self, high}, 2, {}, 0}, out);
  return context.fail(Error::InvalidArgument, "neither a lower nor an upper bound");
}

// The coefficients are not rounded to a half type of the tensor.
Error elu(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  if (!is_floating(self.dtype) || !is_floating(args[4]->t->dtype)) {
    return context.fail(Error::InvalidArgument, "needs tensors of floats");
  }
  const ScalarType common = self.dtype == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  return map(context, {float_rows<Elu, 1>, common, {&self}, 1, {args[1], args[2], args[3]}, 3}, *args[4]->t);
}

Error gelu(KernelContext& context, Span<EValue*> args) {
  const char* approximate = args[1]->s.data;
  const bool exact = strcmp(approximate, "none") == 0;
  if (!exact && strcmp(approximate, "tanh") != 0) {
    return context.fail(Error::InvalidArgument, "approximation '%s'", approximate);
  }
  return keep(context, args, exact ? float_rows<GeluErf, 1> : float_rows<GeluTanh, 1>, 0, 2);
}

Error where(KernelContext& context, Span<EValue*> args) {
  const Tensor& a = *args[1]->t;
  const Tensor& b = *args[2]->t;
  return map(context, {any_rows<Where, 3>, promote(a.dtype, b.dtype), {args[0]->t, &a, &b}, 3, {}, 0},
             *args[3]->t);
}

Error masked_fill(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  return map(context, {any_rows<MaskedFill, 2>, self.dtype, {&self, args[1]->t}, 2, {args[2]}, 1},
             *args[3]->t);
}

}  // namespace

#define KEEP(name, rows) KERNEL(aten_##name##_out, "TT", keep(context, args, rows, 0, 1))
#define FLOAT(name, Op) KERNEL(aten_##name##_out, "TT", to_float(context, args, float_rows<Op, 1>, 0, 1))

KEEP(abs, (any_rows<Absolute, 1>))
KEEP(neg, (any_rows<Negate, 1>))
KEEP(sign, (any_rows<Sign, 1>))
KEEP(relu, (any_rows<Relu, 1>))
KERNEL(aten_bitwise_not_out, "TT",
       keep(context, args,
            args[0]->t->dtype == ScalarType::Bool ? integer_rows<LogicalNot, 1> : integer_rows<BitwiseNot, 1>,
            0, 1))
KEEP(floor, rounding_rows<Floor>)
KEEP(ceil, rounding_rows<Ceil>)
KEEP(trunc, rounding_rows<Truncate>)
KEEP(round, rounding_rows<Round>)
FLOAT(reciprocal, Reciprocal)
FLOAT(sqrt, SquareRoot)
FLOAT(rsqrt, ReverseSquareRoot)
FLOAT(sigmoid, Sigmoid)
FLOAT(exp, Exp)
FLOAT(expm1, Expm1)
FLOAT(log, Log)
FLOAT(log2, Log2)
FLOAT(log10, Log10)
FLOAT(log1p, Log1p)
FLOAT(erf, Erf)
FLOAT(sin, Sin)
FLOAT(cos, Cos)
FLOAT(tan, Tan)
FLOAT(asin, Asin)
FLOAT(acos, Acos)
FLOAT(atan, Atan)
FLOAT(sinh, Sinh)
FLOAT(cosh, Cosh)
FLOAT(tanh, Tanh)
FLOAT(asinh, Asinh)
FLOAT(acosh, Acosh)
FLOAT(atanh, Atanh)
KERNEL(aten_logical_not_out, "TT", predicate(context, args, any_rows<LogicalNot, 1>))
KERNEL(aten_isnan_out, "TT", predicate(context, args, any_rows<IsNan, 1>))
KERNEL(aten_isinf_out, "TT", predicate(context, args, any_rows<IsInf, 1>))
KERNEL(aten_leaky_relu_out, "TST", keep(context, args, float_rows<LeakyRelu, 1>, 1, 2))
KERNEL(aten_hardtanh_out, "TSST", keep(context, args, any_rows<Clamp, 1>, 2, 3))
KERNEL(aten_clamp_out, "TssT", clamp(context, args))
KERNEL(aten_clamp_Tensor_out, "TttT", clamp_by_tensors(context, args))
KERNEL(aten_gelu_out, "TAT", gelu(context, args))
KERNEL(aten_where_self_out, "TTTT", where(context, args))
KERNEL(aten_masked_fill_Scalar_out, "TTST", masked_fill(context, args))
KERNEL(aten_logit_out, "TsT",
       args[1]->is_none() ? to_float(context, args, float_rows<Logit, 1>, 0, 2)
                          : to_float(context, args, float_rows<LogitClamped, 1>, 1, 2))
KERNEL(aten_elu_out, "TSSST", elu(context, args))

}  // namespace armdeploy::kernels
