// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the scalars of a method: shapes, loop counters, conditions. (executorch_prim and the aten
// operators that read a scalar out of a tensor.)
#include <cmath>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/integer.h"
#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

void set(EValue& out, int64_t value) {
  out.tag = Tag::Int;
  out.i = value;
}
void set(EValue& out, double value) {
  out.tag = Tag::Double;
  out.d = value;
}
void set(EValue& out, bool value) {
  out.tag = Tag::Bool;
  out.b = value;
}

struct Add {
  template <class T>
  static T run(T a, T b) {
    return wrap_add(a, b);
  }
};
struct Subtract {
  template <class T>
  static T run(T a, T b) {
    return wrap_add(a, wrap_negate(b));
  }
};
struct Multiply {
  template <class T>
  static T run(T a, T b) {
    return wrap_multiply(a, b);
  }
};
struct Divide {
  static double run(int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  static double run(double a, double b) {
    return a / b;
  }
};
struct Largest {
  template <class T>
  static T run(T a, T b) {
    return a < b ? b : a;
  }
};
struct Smallest {
  template <class T>
  static T run(T a, T b) {
    return b < a ? b : a;
  }
};

// b is not 0; -1 is apart since INT64_MIN / -1 overflows.
struct FloorDivide {
  static int64_t run(int64_t a, int64_t b) {
    if (b == -1) return wrap_negate(a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }
  static double run(double a, double b) {
    if (b == 0) return std::signbit(a) ? -HUGE_VAL : HUGE_VAL;
    const double rest = std::fmod(a, b);
    const double quotient = (a - rest) / b;
    return rest != 0 && std::signbit(b) != std::signbit(rest) ? quotient - 1 : quotient;
  }
};

#define COMPARISON(Name, operation) \
  struct Name {                     \
    template <class T>              \
    static bool run(T a, T b) {     \
      return a operation b;         \
    }                               \
  };
COMPARISON(Equal, ==)
COMPARISON(Less, <)
COMPARISON(LessEqual, <=)
COMPARISON(Greater, >)
COMPARISON(GreaterEqual, >=)
#undef COMPARISON

bool is_number(const EValue& value) {
  return value.tag == Tag::Int || value.tag == Tag::Double;
}

// Two integers in int64, a double among them in double.
template <class Op>
Error number(KernelContext& context, const EValue& a, const EValue& b, EValue& out) {
  if (!is_number(a) || !is_number(b)) {
    const bool both_bool = a.tag == Tag::Bool && b.tag == Tag::Bool;
    if (!both_bool) return context.fail(Error::InvalidType, "operands that are no two numbers");
  }
  if (a.tag == Tag::Double || b.tag == Tag::Double) {
    set(out, Op::run(a.to_double(), b.to_double()));
  } else {
    set(out, Op::run(a.to_int(), b.to_int()));
  }
  return Error::Ok;
}

bool integer_zero(const EValue& value) {
  return value.tag != Tag::Double && value.to_int() == 0;
}

Error floor_divide(KernelContext& context, const EValue& a, const EValue& b, EValue& out) {
  if (a.tag != Tag::Double && integer_zero(b))
    return context.fail(Error::InvalidArgument, "division by zero");
  return number<FloorDivide>(context, a, b, out);
}

// Truncating, as ExecuTorch has it: its operands are sizes.
Error integer_divide(KernelContext& context, const EValue& a, const EValue& b, EValue& out, bool remainder) {
  if (integer_zero(b)) return context.fail(Error::InvalidArgument, "division by zero");
  const int64_t divisor = b.to_int();
  if (divisor == -1) {
    set(out, remainder ? int64_t{0} : wrap_negate(a.to_int()));
  } else {
    set(out, remainder ? a.to_int() % divisor : a.to_int() / divisor);
  }
  return Error::Ok;
}

Error negate(const EValue& a, EValue& out) {
  if (a.tag == Tag::Double) {
    set(out, -a.d);
  } else {
    set(out, wrap_negate(a.to_int()));
  }
  return Error::Ok;
}

Error to_integer(double rounded, EValue& out) {
  set(out, rounded >= 0x1p63 ? INT64_MAX : rounded >= -0x1p63 ? static_cast<int64_t>(rounded) : INT64_MIN);
  return Error::Ok;
}

template <class T>
Error give(EValue& out, T value) {
  set(out, value);
  return Error::Ok;
}

// One branch's value; the tags of both are kept as they are.
Error choose(const EValue& condition, const EValue& yes, const EValue& no, EValue& out) {
  const EValue& chosen = condition.to_int() != 0 ? yes : no;
  out.tag = chosen.tag;
  out.i = 0;
  if (chosen.tag == Tag::Double) return give(out, chosen.d);
  return chosen.tag == Tag::Bool ? give(out, chosen.b) : give(out, chosen.i);
}

Error size_of(KernelContext& context, const Tensor& self, const EValue& argument, EValue& out) {
  size_t dim = 0;
  if (self.rank == 0) return context.fail(Error::InvalidArgument, "a scalar has no dimensions");
  ARMDEPLOY_TRY(dim_of(context, argument, self.rank, &dim));
  return give(out, static_cast<int64_t>(self.sizes[dim]));
}

Error scalar_of(KernelContext& context, const Tensor& self, EValue& out) {
  if (self.numel() != 1) return context.fail(Error::InvalidArgument, "%zu elements, needs one", self.numel());
  if (self.dtype == ScalarType::Bool) return give(out, *self.as<uint8_t>() != 0);
  if (is_floating(self.dtype)) return give(out, load<double>(self.dtype, self.data));
  return give(out, load<int64_t>(self.dtype, self.data));
}

// Row `index` of `target` becomes `source`; `target` grows to hold it.
Error copy_index(KernelContext& context, Tensor& target, const Tensor& source, int64_t index) {
  if (target.rank != source.rank + 1u || index < 0 || index >= INT32_MAX) {
    return context.fail(Error::InvalidArgument, "row %ld, or ranks that do not fit",
                        static_cast<long>(index));
  }
  if (target.constant) return context.fail(Error::InvalidArgument, "the tensor is a constant of the program");
  if (target.sizes[0] <= index) {
    size_t sizes[kMaxRank] = {static_cast<size_t>(index) + 1};
    for (size_t d = 0; d < source.rank; d++) sizes[d + 1] = static_cast<size_t>(source.sizes[d]);
    ARMDEPLOY_TRY(resize(context, target, sizes, target.rank));
  }
  View row(target);
  ARMDEPLOY_TRY(select(context, row, 0, index));
  for (size_t d = 0; d < source.rank; d++) {
    if (target.sizes[d + 1] != source.sizes[d])
      return context.fail(Error::InvalidArgument, "a row of another shape");
  }
  copy(row, target.dtype, View(source), source.dtype);
  return Error::Ok;
}

}  // namespace

KERNEL(executorch_prim_add_Scalar, "SS.", number<Add>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_sub_Scalar, "SS.", number<Subtract>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_mul_Scalar, "SS.", number<Multiply>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_truediv_Scalar, "SS.", number<Divide>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_floordiv_Scalar, "SS.", floor_divide(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_floordiv_int, "SS.", integer_divide(context, *args[0], *args[1], *args[2], false))
KERNEL(executorch_prim_mod_int, "SS.", integer_divide(context, *args[0], *args[1], *args[2], true))
KERNEL(executorch_prim_mod_Scalar, "SS.", integer_divide(context, *args[0], *args[1], *args[2], true))
KERNEL(executorch_prim_eq_Scalar, "SS.", number<Equal>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_lt_Scalar, "SS.", number<Less>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_le_Scalar, "SS.", number<LessEqual>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_gt_Scalar, "SS.", number<Greater>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_ge_Scalar, "SS.", number<GreaterEqual>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_sym_max_Scalar, "SS.", number<Largest>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_sym_min_Scalar, "SS.", number<Smallest>(context, *args[0], *args[1], *args[2]))
KERNEL(executorch_prim_neg_Scalar, "S.", negate(*args[0], *args[1]))
KERNEL(executorch_prim_sym_float_Scalar, "S.", give(*args[1], args[0]->to_double()))
KERNEL(executorch_prim_sym_not_Scalar, "S.", give(*args[1], args[0]->to_int() == 0))
KERNEL(executorch_prim_sym_int_Scalar, "S.", to_integer(std::trunc(args[0]->to_double()), *args[1]))
KERNEL(executorch_prim_trunc_Scalar, "S.", to_integer(std::trunc(args[0]->to_double()), *args[1]))
KERNEL(executorch_prim_ceil_Scalar, "S.", to_integer(std::ceil(args[0]->to_double()), *args[1]))
KERNEL(executorch_prim_round_Scalar, "S.", to_integer(std::nearbyint(args[0]->to_double()), *args[1]))
KERNEL(executorch_prim_sym_ite_Scalar, "SSS.", choose(*args[0], *args[1], *args[2], *args[3]))
KERNEL(executorch_prim_et_copy_index_tensor, "TTS",
       copy_index(context, *args[0]->t, *args[1]->t, args[2]->to_int()))
KERNEL(aten_sym_size_int, "TS.", size_of(context, *args[0]->t, *args[1], *args[2]))
KERNEL(aten_sym_numel, "T.", give(*args[1], static_cast<int64_t>(args[0]->t->numel())))
KERNEL(aten__local_scalar_dense, "T.", scalar_of(context, *args[0]->t, *args[1]))

}  // namespace armdeploy::kernels
