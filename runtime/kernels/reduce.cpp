// SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions: sums, products, extremes, truth values, positions of extremes.
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/integer.h"
#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

// Adds `count` values to what has been reduced so far.
template <class T>
using FoldRow = void (*)(T* total, const T* values, size_t count);

template <class Op, class T>
void fold_row(T* total, const T* values, size_t count) {
  for (size_t i = 0; i < count; i++) *total = Op::run(*total, values[i]);
}

struct Sum {
  template <class T>
  static T start() {
    return 0;
  }
  template <class T>
  static T run(T a, T b) {
    return wrap_add(a, b);
  }
};
struct Product {
  template <class T>
  static T start() {
    return 1;
  }
  template <class T>
  static T run(T a, T b) {
    return wrap_multiply(a, b);
  }
};
template <class T>
T infinity() {
  return std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
}
struct Largest {
  template <class T>
  static T start() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -infinity<T>();
  }
  template <class T>
  static T run(T a, T b) {
    return a != a || !(b > a || b != b) ? a : b;  // NaN wins
  }
};
struct Smallest {
  template <class T>
  static T start() {
    return infinity<T>();
  }
  template <class T>
  static T run(T a, T b) {
    return a != a || !(b < a || b != b) ? a : b;
  }
};
struct Any {
  template <class T>
  static T start() {
    return 0;
  }
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(a != 0 || b != 0);
  }
};
struct All {
  template <class T>
  static T start() {
    return 1;
  }
  template <class T>
  static T run(T a, T b) {
    return static_cast<T>(a != 0 && b != 0);
  }
};

// An operator in one type of computation, and what it starts from.
template <class T>
struct Fold {
  FoldRow<T> row;
  T start;
};
struct Folds {
  Fold<int64_t> integer;
  Fold<float> single;
  Fold<double> real;
};
template <class Op>
Folds folds() {
  return {{fold_row<Op, int64_t>, Op::template start<int64_t>()},
          {fold_row<Op, float>, Op::template start<float>()},
          {fold_row<Op, double>, Op::template start<double>()}};
}

template <class T>
struct Job {
  Fold<T> fold;
  ScalarType type;
  T total;
};

template <class T>
void run_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  Job<T>& job = *static_cast<Job<T>*>(context);
  T values[kChunk];
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = count - done < kChunk ? count - done : kChunk;
    load_row<T>(job.type, data[0] + static_cast<ptrdiff_t>(done) * stride[0], stride[0], n, values);
    job.fold.row(&job.total, values, n);
  }
}

// The input seen as kept dimensions (one step of them an element of the result) and reduced ones.
struct Split {
  View kept;
  View reduced;
};

Split split(const Tensor& self, uint32_t dims) {
  const View whole(self);
  Split parts;
  parts.kept.data = parts.reduced.data = whole.data;
  for (size_t d = 0; d < whole.rank; d++) {
    View& part = dims >> d & 1u ? parts.reduced : parts.kept;
    part.size[part.rank] = whole.size[d];
    part.stride[part.rank++] = whole.stride[d];
  }
  return parts;
}

// Bits of the dimensions that `list` names; all for None or an empty list.
Error dims_of(KernelContext& context, const EValue& list, size_t rank, uint32_t* dims) {
  const uint32_t all = rank == 0 ? 0 : static_cast<uint32_t>((uint64_t{1} << rank) - 1);
  const bool one = list.is_scalar();
  *dims = 0;
  const size_t count = list.is_none() ? 0 : one ? 1 : list.list.size;
  for (size_t k = 0; k < count; k++) {
    size_t dim = 0;
    ARMDEPLOY_TRY(dim_of(context, one ? list : *list.list[k], rank, &dim));
    *dims |= 1u << dim;
  }
  *dims = count == 0 ? all : *dims & all;
  return Error::Ok;
}

Error shape_result(KernelContext& context, const Tensor& self, uint32_t dims, bool keep, Tensor& out) {
  size_t sizes[kMaxRank];
  size_t rank = 0;
  for (size_t d = 0; d < self.rank; d++) {
    const bool gone = dims >> d & 1u;
    if (gone && !keep) continue;
    sizes[rank++] = gone ? 1 : static_cast<size_t>(self.sizes[d]);
  }
  return resize(context, out, sizes, rank);
}

// Calls `visit(data, out index)` for the first element of every reduction, the result's elements in order.
template <class Visit>
void each(const View& kept, Visit visit) {
  size_t index[kMaxRank] = {};
  uint8_t* data = kept.data;
  const size_t count = kept.numel();
  for (size_t i = 0; i < count; i++) {
    visit(data, i);
    for (size_t d = kept.rank; d-- > 0;) {
      data += kept.stride[d];
      if (++index[d] < kept.size[d]) break;
      data -= kept.stride[d] * static_cast<ptrdiff_t>(kept.size[d]);
      index[d] = 0;
    }
  }
}

template <class T>
void run(const Tensor& self, Split parts, const Fold<T>& fold, bool mean, Tensor& out) {
  const size_t bytes = element_size(out.dtype);
  const T count = static_cast<T>(parts.reduced.numel());
  each(parts.kept, [&](uint8_t* data, size_t index) {
    Job<T> job = {fold, self.dtype, fold.start};
    parts.reduced.data = data;
    Loop loop;
    (void)loop.plan(&parts.reduced, 1);
    loop.run(run_row<T>, &job);
    store<T>(out.dtype, out.as<uint8_t>() + index * bytes, mean ? job.total / count : job.total);
  });
}

// Which type is computed in: the result's, the input's; for a mean, which is divided by the count, the
// result's. ExecuTorch's kernel sums doubles over one dimension in float.
enum class Rule : uint8_t { Result, Sum, Input, Mean };

Error reduce(KernelContext& context, const Tensor& self, const EValue& list, bool keep, const Folds& fold,
             Rule rule, Tensor& out) {
  uint32_t dims = 0;
  ARMDEPLOY_TRY(dims_of(context, list, self.rank, &dims));
  ARMDEPLOY_TRY(shape_result(context, self, dims, keep, out));
  if (!out.contiguous()) return context.fail(Error::NotSupported, "a result in another memory order");
  if (rule == Rule::Mean && !is_floating(out.dtype))
    return context.fail(Error::InvalidArgument, "a mean of integers");
  const Split parts = split(self, dims);
  const Compute compute = compute_of(rule == Rule::Input ? self.dtype : out.dtype);
  const bool one_dim = dims != 0 && (dims & (dims - 1)) == 0;
  switch (rule == Rule::Sum && one_dim && compute == Compute::Double ? Compute::Single : compute) {
    case Compute::Integer:
      run<int64_t>(self, parts, fold.integer, false, out);
      break;
    case Compute::Single:
      run<float>(self, parts, fold.single, rule == Rule::Mean, out);
      break;
    default:
      run<double>(self, parts, fold.real, rule == Rule::Mean, out);
  }
  return Error::Ok;
}

// An extreme of no elements does not exist.
Error extreme(KernelContext& context, const Tensor& self, const EValue& list, bool keep, const Folds& fold,
              Tensor& out) {
  if (self.numel() == 0) return context.fail(Error::InvalidArgument, "an extreme of no elements");
  return reduce(context, self, list, keep, fold, Rule::Input, out);
}

template <class T>
bool better(T candidate, T best, bool largest) {
  if (best != best) return false;
  return candidate != candidate || (largest ? candidate > best : candidate < best);
}

// The position of the first extreme along the reduced dimension (of all elements in order: None).
template <class T>
int64_t position(const View& line, ScalarType type, uint8_t* first, bool largest) {
  T best = load<T>(type, first);
  int64_t at = 0;
  View elements = line;
  elements.data = first;
  each(elements, [&](const uint8_t* data, size_t index) {
    const T value = load<T>(type, data);
    if (!better(value, best, largest)) return;
    best = value;
    at = static_cast<int64_t>(index);
  });
  return at;
}

Error arg_extreme(KernelContext& context, Span<EValue*> args, bool largest) {
  const Tensor& self = *args[0]->t;
  Tensor& out = *args[3]->t;
  uint32_t dims = 0;
  if (self.numel() == 0) return context.fail(Error::InvalidArgument, "an extreme of no elements");
  ARMDEPLOY_TRY(dims_of(context, *args[1], self.rank, &dims));
  ARMDEPLOY_TRY(shape_result(context, self, dims, args[2]->to_int() != 0, out));
  if (!out.contiguous()) return context.fail(Error::NotSupported, "a result in another memory order");
  const Split parts = split(self, dims);
  const size_t bytes = element_size(out.dtype);
  each(parts.kept, [&](uint8_t* data, size_t index) {
    const int64_t at = compute_of(self.dtype) == Compute::Integer
                           ? position<int64_t>(parts.reduced, self.dtype, data, largest)
                           : position<double>(parts.reduced, self.dtype, data, largest);
    store<int64_t>(out.dtype, out.as<uint8_t>() + index * bytes, at);
  });
  return Error::Ok;
}

}  // namespace

KERNEL(aten_sum_IntList_out, "TlS.T",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Sum>(), Rule::Sum, *args[4]->t))
KERNEL(aten_mean_out, "TlS.T",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Sum>(), Rule::Mean, *args[4]->t))
KERNEL(aten_prod_int_out, "TSS.T",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Product>(), Rule::Result,
              *args[4]->t))
KERNEL(aten_prod_out, "T.T",
       reduce(context, *args[0]->t, EValue(), false, folds<Product>(), Rule::Result, *args[2]->t))
KERNEL(aten_amax_out, "TlST",
       extreme(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Largest>(), *args[3]->t))
KERNEL(aten_amin_out, "TlST",
       extreme(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Smallest>(), *args[3]->t))
KERNEL(aten_max_unary_out, "TT",
       extreme(context, *args[0]->t, EValue(), false, folds<Largest>(), *args[1]->t))
KERNEL(aten_min_unary_out, "TT",
       extreme(context, *args[0]->t, EValue(), false, folds<Smallest>(), *args[1]->t))
KERNEL(aten_any_all_out, "TT",
       reduce(context, *args[0]->t, EValue(), false, folds<Any>(), Rule::Input, *args[1]->t))
KERNEL(aten_any_out, "TSST",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Any>(), Rule::Input, *args[3]->t))
KERNEL(aten_any_dims_out, "TlST",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<Any>(), Rule::Input, *args[3]->t))
KERNEL(aten_all_all_out, "TT",
       reduce(context, *args[0]->t, EValue(), false, folds<All>(), Rule::Input, *args[1]->t))
KERNEL(aten_all_out, "TSST",
       reduce(context, *args[0]->t, *args[1], args[2]->to_int() != 0, folds<All>(), Rule::Input, *args[3]->t))
KERNEL(aten_argmax_out, "TsST", arg_extreme(context, args, true))
KERNEL(aten_argmin_out, "TsST", arg_extreme(context, args, false))

}  // namespace armdeploy::kernels
