// SPDX-License-Identifier: Apache-2.0
// executor_runner for AArch64 Linux: any .pte, inputs and outputs as files, on the libraries of ExecuTorch's
// wheel.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/platform.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clock.h"
#include "features.h"
#include "files.h"
#include "options.h"

// The wheel exports these of its thread pool library, but ships no header for them.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

namespace armdeploy {
namespace {

using executorch::etdump::ETDumpGen;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::Error;
using executorch::runtime::EValue;

// Exit statuses, as the command line tool has them.
enum Status : int { kOk = 0, kUsage = 2, kFailed = 5 };

int failed(const char* what, Error error) {
  fprintf(stderr, "E %s: %s (0x%02x)\n", what, executorch::runtime::to_string(error),
          static_cast<unsigned>(error));
  return kFailed;
}

// One input: the file's bytes and the tensor that refers to them.
struct Input {
  std::vector<uint8_t> bytes;
  TensorPtr tensor;
};

bool read_input(const std::string& path, const executorch::runtime::TensorInfo& wanted, Input* out) {
  if (!read_file(path, &out->bytes)) return false;
  if (out->bytes.size() != wanted.nbytes()) {
    fprintf(stderr, "E %s has %zu bytes, the program takes %zu\n", path.c_str(), out->bytes.size(),
            wanted.nbytes());
    return false;
  }
  std::vector<executorch::aten::SizesType> sizes(wanted.sizes().begin(), wanted.sizes().end());
  std::vector<executorch::aten::DimOrderType> order(wanted.dim_order().begin(), wanted.dim_order().end());
  out->tensor = executorch::extension::make_tensor_ptr(std::move(sizes), out->bytes.data(), std::move(order),
                                                       {}, wanted.scalar_type());
  return true;
}

int read_inputs(Module& module, const Options& options, std::vector<Input>* out) {
  auto meta = module.method_meta(options.method);
  if (!meta.ok()) return failed("method", meta.error());
  if (options.inputs.size() != meta->num_inputs()) {
    fprintf(stderr, "E %zu input file(s), the program takes %zu\n", options.inputs.size(),
            meta->num_inputs());
    return kUsage;
  }
  out->resize(options.inputs.size());
  for (size_t at = 0; at < out->size(); ++at) {
    auto wanted = meta->input_tensor_meta(at);
    if (!wanted.ok()) return failed("an input that is no tensor", wanted.error());
    if (!read_input(options.inputs[at], *wanted, &(*out)[at])) return kUsage;
  }
  return kOk;
}

int write_outputs(const std::vector<EValue>& values, const Options& options) {
  for (size_t at = 0; at < values.size(); ++at) {
    if (!values[at].isTensor()) {
      fprintf(stderr, "E output %zu is no tensor\n", at);
      return kFailed;
    }
    const auto& tensor = values[at].toTensor();
    const std::string path = options.output + "-" + std::to_string(at) + ".bin";
    if (!write_file(path, tensor.const_data_ptr(), tensor.nbytes())) return kFailed;
    printf("I output %zu: %zu bytes in %s\n", at, tensor.nbytes(), path.c_str());
  }
  return kOk;
}

// All inferences; the outputs are those of the last one.
int infer(Module& module, const Options& options, const std::vector<Input>& inputs,
          std::vector<EValue>* outputs) {
  std::vector<EValue> values;
  for (const Input& input : inputs) values.emplace_back(*input.tensor);
  for (uint32_t done = 0; done < options.warmup + options.inferences; ++done) {
    const uint64_t started = now();
    auto result = module.execute(options.method, values);
    const uint64_t ended = now();
    if (!result.ok()) return failed("execute", result.error());
    *outputs = std::move(*result);
    if (options.clock == "time" && done >= options.warmup) {
      printf("I inference %u took %" PRIu64 " ns\n", done - options.warmup, ended - started);
    }
  }
  return kOk;
}

int write_etdump(ETDumpGen* tracer, const std::string& path) {
  const auto result = tracer->get_etdump_data();
  if (result.buf == nullptr) {
    fprintf(stderr, "E no ETDump was recorded\n");
    return kFailed;
  }
  const bool written = write_file(path, result.buf, result.size);
  free(result.buf);
  return written ? kOk : kFailed;
}

// The memory map, and in a last line where counted calls of the clock can be seen. Before the first of them.
int write_maps(const std::string& path) {
  std::vector<uint8_t> text;
  if (!read_file("/proc/self/maps", &text)) return kFailed;
  char line[64];
  const int size = snprintf(line, sizeof line, "counter %#" PRIxPTR "\n", counter_address());
  text.insert(text.end(), line, line + size);
  return write_file(path, text.data(), text.size()) ? kOk : kFailed;
}

// From here the clock counts. ETDump's ticks have an origin of their own: one of them is told with its call.
void start_counting() {
  count_calls();
  const uint64_t tick = et_pal_current_ticks();
  printf("I clock call %" PRIu64 " is tick %" PRIu64 "\n", counted_calls(), tick);
}

int execute(const Options& options) {
  printf("I executor_runner: cpu has %s, libraries may use %s, %u thread(s)\n", best_isa(),
         options.isa.c_str(), options.threads);
  if (!options.maps.empty()) {
    if (int status = write_maps(options.maps); status != kOk) return status;
  }
  if (options.clock == "calls") start_counting();
  executorch::extension::threadpool::get_threadpool()->_unsafe_reset_threadpool(options.threads);
  auto tracer = options.etdump.empty() ? nullptr : std::make_unique<ETDumpGen>();
  ETDumpGen* const events = tracer.get();
  Module module(options.model, Module::LoadMode::File, std::move(tracer));
  if (Error error = module.load_method(options.method); error != Error::Ok) return failed("load", error);
  printf("I method '%s' of %s loaded\n", options.method.c_str(), options.model.c_str());
  std::vector<Input> inputs;
  if (int status = read_inputs(module, options, &inputs); status != kOk) return status;
  std::vector<EValue> outputs;
  if (int status = infer(module, options, inputs, &outputs); status != kOk) return status;
  if (int status = write_outputs(outputs, options); status != kOk) return status;
  return events != nullptr ? write_etdump(events, options.etdump) : kOk;
}

}  // namespace
}  // namespace armdeploy

int main(int count, char** words) {
  armdeploy::Options options;
  const int status = armdeploy::parse_options(count, words, &options) ? armdeploy::execute(options) : 2;
  if (status == 0) printf("I Program complete, exiting.\n");
  printf("run %s ended with exit status %d\n", options.run_id.c_str(), status);
  return fflush(stdout) == 0 ? status : 1;
}
