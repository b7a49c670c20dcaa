// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace armdeploy::host {
namespace {

bool is(const char* text, const char* name, const char* other) {
  return std::strcmp(text, name) == 0 || std::strcmp(text, other) == 0;
}

bool number(const char* text, size_t* out) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 0);
  *out = static_cast<size_t>(value);
  return end != text && *end == 0;
}

// "2,3": the shape of the input named last.
bool shape(const char* text, Options* out) {
  if (out->input_count == 0) return false;
  Input& input = out->inputs[out->input_count - 1];
  input = {input.path, {}, 0, true};
  while (*text && input.rank < kMaxDimensions) {
    char* end = nullptr;
    input.shape[input.rank++] = static_cast<int32_t>(std::strtol(text, &end, 10));
    if (end == text || (*end && *end != ',')) return false;
    text = *end ? end + 1 : end;
  }
  return *text == 0;
}

bool take(const char* name, const char* value, Options* out) {
  if (is(name, "-m", "--model")) return out->model = value, true;
  if (is(name, "-o", "--output")) return out->output = value, true;
  if (is(name, "--method", "--method_name")) return out->method = value, true;
  if (is(name, "--num-inferences", "--num_executions")) return number(value, &out->inferences);
  if (is(name, "--method-pool", "")) return number(value, &out->method_pool);
  if (is(name, "--temp-pool", "")) return number(value, &out->temp_pool);
  if (is(name, "--planned-pool", "") && out->planned_count < kMaxInputs) {
    return number(value, &out->planned_pools[out->planned_count++]);
  }
  if (is(name, "--shape", "")) return shape(value, out);
  if (is(name, "-i", "--input") && out->input_count < kMaxInputs)
    return out->inputs[out->input_count++].path = value, true;
  return false;
}

}  // namespace

const char kUsage[] =
    "usage: runner_host -m MODEL.pte|.bpte [-i FILE]… [-o PREFIX] [options]\n"
    "\n"
    "Runs a program with its tensors' raw bytes and writes PREFIX-0.bin, PREFIX-1.bin, …\n"
    "A .bpte's own test cases are run and compared when no -i is given.\n"
    "\n"
    "  --shape D,D,…         of the input before it, when its dimensions may vary (default: the largest)\n"
    "  --method NAME         default: forward\n"
    "  --num-inferences N    default: 1\n"
    "  --method-pool BYTES   the method's structures (16 MiB)\n"
    "  --temp-pool BYTES     scratch of one call (4 MiB)\n"
    "  --planned-pool BYTES  planned memory; once for each memory id (default: what the program says)\n"
    "  --events              log the begin and end of every instruction\n"
    "\n"
    "Exit: 0 ok, 2 usage, 4 the program cannot be loaded, 5 it failed or its outputs differ.\n";

bool parse(int count, char** arguments, Options* out) {
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--events") == 0) {
      out->events = true;
      continue;
    }
    if (i + 1 >= count || !take(arguments[i], arguments[i + 1], out)) {
      std::fprintf(stderr, "runner_host: option %s is unknown, lacks a value or has a bad one\n",
                   arguments[i]);
      return false;
    }
    ++i;
  }
  if (!out->model) std::fprintf(stderr, "runner_host: no model; give -m FILE\n");
  return out->model != nullptr;
}

}  // namespace armdeploy::host
