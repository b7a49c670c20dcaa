// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/report.h"

#include "runtime/ethosu/driver.h"
#include "runtime/ethosu/pmu.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/console.h"

namespace armdeploy {
namespace {

void report_pool(const char* label, const Arena& arena, size_t used) {
  const size_t percent = arena.size() == 0 ? 0 : used * 100 / arena.size();
  report(Level::Info, "%s %zu / %zu  free: %zu ( used: %zu %% )", label, used, arena.size(),
         arena.size() - used, percent);
}

// Prints `value / count` with two decimals.
void print_per_inference(const char* label, uint64_t value, uint32_t count) {
  const uint64_t hundredths = value * 100 / count;
  console::printf("%s%llu (%llu.%02u per inference)", label, static_cast<unsigned long long>(value),
                  static_cast<unsigned long long>(hundredths / 100), static_cast<unsigned>(hundredths % 100));
}

// The share of `part` in `whole` in percent.
void print_ratio(const char* label, uint64_t part, uint64_t whole) {
  const uint64_t hundredths = whole == 0 ? 0 : part * 10000 / whole;
  console::printf("%s%u.%02u %%", label, static_cast<unsigned>(hundredths / 100),
                  static_cast<unsigned>(hundredths % 100));
}

void print_cpu_cycles(uint32_t total, uint32_t waiting) {
  console::printf("Inference runtime: %u CPU cycles total", static_cast<unsigned>(total));
  const uint32_t own = total > waiting ? total - waiting : 0;
  print_ratio("Inference CPU ratio: ", own, total);
  print_ratio("Inference NPU ratio: ", total - own, total);
  console::printf("cpu_wait_for_npu_cntr : %u CPU cycles", static_cast<unsigned>(waiting));
}

void print_counters(uint32_t inferences, ethosu::Family family, const ethosu::pmu::Counts& counts) {
  const Span<const ethosu::pmu::Event> events = ethosu::pmu::events(family);
  console::print("Ethos-U PMU report:");
  print_per_inference("ethosu_pmu_cycle_cntr : ", counts.cycles, inferences);
  for (size_t index = 0; index < events.size; ++index) {
    console::printf("ethosu_pmu_cntr%zu : %u (ETHOSU_PMU_%s)%s", index,
                    static_cast<unsigned>(counts.values[index]), events[index].name,
                    (counts.overflowed >> index & 1) != 0 ? " overflowed" : "");
  }
}

void print_element(const Tensor& tensor, size_t output, size_t index) {
  switch (tensor.dtype) {
    case ScalarType::Float:
      console::printf("Output[%zu][%zu]: (float) %f", output, index,
                      static_cast<double>(tensor.as<float>()[index]));
      break;
    case ScalarType::Char:
      console::printf("Output[%zu][%zu]: (char) %d", output, index, tensor.as<int8_t>()[index]);
      break;
    case ScalarType::Byte:
    case ScalarType::Bool:
      console::printf("Output[%zu][%zu]: (byte) %u", output, index, tensor.as<uint8_t>()[index]);
      break;
    case ScalarType::Short:
      console::printf("Output[%zu][%zu]: (short) %d", output, index, tensor.as<int16_t>()[index]);
      break;
    case ScalarType::Int:
      console::printf("Output[%zu][%zu]: (int) %d", output, index,
                      static_cast<int>(tensor.as<int32_t>()[index]));
      break;
    case ScalarType::Long:
      console::printf("Output[%zu][%zu]: (long) %lld", output, index,
                      static_cast<long long>(tensor.as<int64_t>()[index]));
      break;
    default:
      console::printf("Output[%zu][%zu]: not printed, its type is %d", output, index,
                      static_cast<int>(tensor.dtype));
      break;
  }
}

}  // namespace

void report_memory(const MemoryUse& use) {
  report(Level::Info, "model_pte_program_size:     %zu bytes.", use.program_bytes);
  report(Level::Info, "model_pte_loaded_size:      %zu bytes.", use.loaded_bytes);
  report_pool("input_file_allocator_used:", *use.file, use.file->used());
  report_pool("method_allocator_used:    ", *use.method, use.method->used());
  report(Level::Info, "method_allocator_planned:   %zu bytes", use.planned_bytes);
  report(Level::Info, "method_allocator_loaded:    %zu bytes", use.method->used() - use.planned_bytes);
  report_pool("temp_allocator:           ", *use.temp, use.temp->peak());
}

void report_performance(uint32_t inferences, uint32_t cpu_cycles) {
  const ethosu::Activity& activity = ethosu::activity();
  console::printf("NPU Inferences : %u", static_cast<unsigned>(inferences));
  print_per_inference("NPU delegations: ", activity.jobs, inferences);
  if (has_cycle_counter()) {
    print_cpu_cycles(cpu_cycles, activity.wait_cycles);
  } else {
    console::print("Inference runtime: n/a, this CPU counts no cycles");
  }
  if (activity.jobs == 0) return;
  const ethosu::Family family = ethosu::identity().family();
  print_counters(inferences, family, ethosu::pmu::read(family));
}

void report_outputs(const Method& method) {
  for (size_t output = 0; output < method.output_count(); ++output) {
    const EValue& value = method.output(output);
    if (!value.is_tensor()) continue;
    const size_t count = value.t->numel();
    for (size_t index = 0; index < count; ++index) print_element(*value.t, output, index);
  }
}

}  // namespace armdeploy
