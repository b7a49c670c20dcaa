// SPDX-License-Identifier: Apache-2.0
#include "runtime/ethosu/driver.h"

#include "board_config.h"
#include "runtime/core/format.h"
#include "runtime/ethosu/pmu.h"
#include "runtime/platform/barrier.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/interrupts.h"

namespace armdeploy::ethosu {
namespace {

// What the driver compares of a CONFIG word: product, MACs and command-stream version.
constexpr uint32_t kComparedConfig = 0xF00000FF;

constexpr uint32_t kResetPolls = 10000;
constexpr uint32_t kSpinsPerPoll = 1024;
constexpr uint32_t kTimeLimitCycles = board::kClockHz * 60;  // 60 s; the clock is below 71 MHz on every board
constexpr uint32_t kTimeLimitPolls = 1u << 26;               // where no cycle counter runs

struct State {
  Identity identity;
  Activity activity;
  volatile bool finished;
  volatile uint32_t status;  // when it finished
};
State state;

struct StatusText {
  uint32_t bit;
  const char* text;
};
constexpr StatusText kErrors[] = {
    {status::BUS_ERROR, "bus error"},           {status::CMD_PARSE_ERROR, "command parse error"},
    {status::WD_FAULT, "weight decoder fault"}, {status::ECC_FAULT, "ECC fault"},
    {status::BRANCH_FAULT, "branch fault"},
};

struct Setting {
  uint32_t offset;
  uint32_t value;
};

constexpr uint32_t axi_limit(uint32_t reads, uint32_t writes) {
  constexpr uint32_t beats_128_bytes = 1, normal_non_cacheable = 2;
  return beats_128_bytes | normal_non_cacheable << 4 | (reads - 1) << 16 | (writes - 1) << 24;
}

constexpr uint32_t axi_port(uint32_t reads, uint32_t writes) {
  constexpr uint32_t beats_256_bytes = 2;
  return (reads - 1) | (writes - 1) << 8 | beats_256_bytes << 16;
}

constexpr uint32_t memory_attribute(uint32_t port) {
  constexpr uint32_t normal_non_cacheable = 2;
  return port << 2 | normal_non_cacheable << 4;
}

// Bus settings by family: the most transactions that hardware allows in flight.
constexpr Setting kBusU55[] = {
    {kAxiLimit0, axi_limit(32, 16)},
    {kAxiLimit0 + 4, axi_limit(32, 16)},
    {kAxiLimit0 + 8, axi_limit(32, 16)},
    {kAxiLimit0 + 12, axi_limit(32, 16)},
};
constexpr Setting kBusU65[] = {
    {kAxiLimit0, axi_limit(64, 32)},
    {kAxiLimit0 + 4, axi_limit(64, 32)},
    {kAxiLimit0 + 8, axi_limit(64, 32)},
    {kAxiLimit0 + 12, axi_limit(64, 32)},
};
constexpr Setting kBusU85[] = {
    {kMemAttr0, memory_attribute(0)},     {kMemAttr0 + 4, memory_attribute(0)},
    {kMemAttr0 + 8, memory_attribute(1)}, {kMemAttr0 + 12, memory_attribute(1)},
    {kAxiSram, axi_port(64, 32)},         {kAxiExt, axi_port(64, 32)},
};
constexpr Span<const Setting> kBus[] = {{kBusU55, 4}, {kBusU65, 4}, {kBusU85, 6}};
constexpr const char* kFamilyNames[] = {"ethos-u55", "ethos-u65", "ethos-u85"};
constexpr size_t kFamilies = sizeof kFamilyNames / sizeof *kFamilyNames;

volatile uint32_t& at(uint32_t offset) {
  return *reinterpret_cast<volatile uint32_t*>(board::kNpuBase + offset);
}

uint32_t low_word(const void* address) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address)); }

// Resets to the secure, privileged state (RESET 0); PROT reads back what was asked for.
Error reset() {
  constexpr uint32_t secure_privileged = 1;
  at(reg::RESET) = secure_privileged;
  uint32_t polls = 0;
  while ((at(reg::STATUS) & status::RESET_ACTIVE) != 0) {
    if (++polls == kResetPolls) return fail(Error::NotSupported, "ethos-u: the NPU does not leave its reset");
  }
  const uint32_t protection = at(reg::PROT);
  if (protection != secure_privileged) {
    return fail(Error::NotSupported, "ethos-u: reset to protection level %u, the NPU is at %u",
                static_cast<unsigned>(secure_privileged), static_cast<unsigned>(protection));
  }
  return Error::Ok;
}

void configure_bus() {
  for (const Setting& setting : kBus[static_cast<size_t>(state.identity.family())]) {
    at(setting.offset) = setting.value;
  }
  at(reg::QCONFIG) = board::kQconfig;
  at(reg::REGIONCFG) = board::kRegioncfg;
}

Error reset_and_configure() {
  if (Error error = reset(); error != Error::Ok) return error;
  configure_bus();
  pmu::configure(state.identity.family());
  return Error::Ok;
}

void acknowledge() {
  at(reg::CMD) = cmd::CLEAR_IRQ | cmd::CLOCK_Q_ENABLE | cmd::POWER_Q_ENABLE;
  state.status = at(reg::STATUS);
  state.finished = true;
}

void start(const Job& job) {
  at(reg::QBASE_LO) = low_word(job.commands.data);
  at(reg::QSIZE) = static_cast<uint32_t>(job.commands.size);
  for (size_t region = 0; region < kBasePointers; ++region) {
    if (job.bases[region] != nullptr) {
      at(static_cast<uint32_t>(reg::BASEP + 8 * region)) = low_word(job.bases[region]);
    }
  }
  state.finished = false;
  memory_barrier();
  at(reg::CMD) = cmd::RUN | cmd::CLOCK_Q_ENABLE | cmd::POWER_Q_ENABLE;
}

// Waits for the interrupt; looks at STATUS itself now and then, should the interrupt be lost.
bool wait(uint32_t started) {
  for (uint32_t spins = 1; !state.finished; ++spins) {
    if (spins % kSpinsPerPoll != 0) continue;
    if ((at(reg::STATUS) & status::IRQ_RAISED) != 0) {
      acknowledge();
    } else if (cycle_count() - started > kTimeLimitCycles ||
               spins / kSpinsPerPoll > kTimeLimitPolls / kSpinsPerPoll) {
      return false;
    }
  }
  memory_barrier();
  return true;
}

Error explain(uint32_t status_word) {
  const char* first = "the end of the commands was not reached";
  for (const StatusText& error : kErrors) {
    if ((status_word & error.bit) != 0) {
      first = error.text;
      break;
    }
  }
  return fail(Error::Internal, "ethos-u: %s at byte %u of the command stream (STATUS %08x)", first,
              static_cast<unsigned>(at(reg::QREAD)), static_cast<unsigned>(status_word));
}

}  // namespace

extern "C" void npu_interrupt() { acknowledge(); }

void Identity::describe(char* text, size_t size) const {
  const size_t index = config >> 28;
  format_text(text, size, "%s-%u", index < kFamilies ? kFamilyNames[index] : "ethos-u", macs());
}

uint32_t read_register(uint32_t offset) { return at(offset); }

void write_register(uint32_t offset, uint32_t value) { at(offset) = value; }

const Identity& identity() { return state.identity; }

const Activity& activity() { return state.activity; }

Error initialise() {
  state.identity.config = at(reg::CONFIG);
  state.identity.id = at(reg::ID);
  if (state.identity.config >> 28 >= kFamilies) {
    return fail(Error::NotSupported, "ethos-u: CONFIG %08x at %08x names no Ethos-U55, U65 or U85",
                static_cast<unsigned>(state.identity.config), static_cast<unsigned>(board::kNpuBase));
  }
  enable_interrupt(board::kNpuIrq);
  return reset_and_configure();
}

Error require_compatible(const Stream& stream) {
  const Identity& here = state.identity;
  const bool same_version =
      stream.id >> 28 == here.id >> 28 && (here.id >> 20 & 0xFF) >= (stream.id >> 20 & 0xFF);
  if (((stream.config ^ here.config) & kComparedConfig) == 0 && same_version) return Error::Ok;
  char built[20], found[20];
  Identity{stream.config, stream.id}.describe(built, sizeof built);
  here.describe(found, sizeof found);
  return fail(Error::DelegateInvalidCompatibility,
              "ethos-u: built for %s (CONFIG %08x, architecture %u.%u), this NPU is %s (CONFIG %08x, "
              "architecture %u.%u)",
              built, static_cast<unsigned>(stream.config), static_cast<unsigned>(stream.id >> 28),
              static_cast<unsigned>(stream.id >> 20 & 0xFF), found, static_cast<unsigned>(here.config),
              static_cast<unsigned>(here.id >> 28), static_cast<unsigned>(here.id >> 20 & 0xFF));
}

Error run(const Job& job) {
  constexpr uint32_t errors = status::BUS_ERROR | status::CMD_PARSE_ERROR | status::WD_FAULT |
                              status::ECC_FAULT | status::BRANCH_FAULT;
  pmu::resume();
  const uint32_t started = cycle_count();
  start(job);
  const bool ended = wait(started);
  state.activity.wait_cycles += cycle_count() - started;
  pmu::pause();
  ++state.activity.jobs;
  Error error = Error::Ok;
  if (!ended) {
    error = fail(Error::Internal,
                 "ethos-u: no end of the job within 60 s (STATUS %08x, byte %u of the command stream)",
                 static_cast<unsigned>(at(reg::STATUS)), static_cast<unsigned>(at(reg::QREAD)));
  } else if ((state.status & errors) != 0 || (state.status & status::CMD_END_REACHED) == 0) {
    error = explain(state.status);
  }
  if (error != Error::Ok && reset_and_configure() != Error::Ok) return Error::Internal;
  return error;
}

}  // namespace armdeploy::ethosu
