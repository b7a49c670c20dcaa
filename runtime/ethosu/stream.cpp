// SPDX-License-Identifier: Apache-2.0
#include "runtime/ethosu/stream.h"

#include <cstring>

namespace armdeploy::ethosu {
namespace {

constexpr uint32_t kCop1 = 0x31504F43;  // "COP1"
constexpr uint32_t kCop2 = 0x32504F43;  // "COP2"
constexpr uint32_t kVeum = 0x4D554556;  // "VEUM"

enum class Action : uint32_t { Config = 1, Commands = 2, Nop = 5 };

// Little-endian words with every read checked; after a failed read everything reads 0.
class Words {
 public:
  explicit Words(Span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t at(size_t offset) {
    uint32_t value = 0;
    if (bytes_.size < 4 || offset > bytes_.size - 4) {
      truncated_ = true;
    } else {
      memcpy(&value, bytes_.data + offset, sizeof value);
    }
    return value;
  }
  bool truncated() const { return truncated_; }

 private:
  Span<const uint8_t> bytes_;
  bool truncated_ = false;
};

Error truncated(size_t offset) {
  return fail(Error::InvalidProgram, "command stream (byte %zu): the driver header ends early", offset);
}

Error cut(Span<const uint8_t> payload, size_t start, uint64_t end, Stream* out) {
  if (end > payload.size || start > end || (end - start) % 4 != 0) {
    return fail(Error::InvalidProgram, "command stream: commands of byte %zu to %lu are not in its %zu bytes",
                start, static_cast<unsigned long>(end), payload.size);
  }
  out->commands = {payload.data + start, static_cast<size_t>(end) - start};
  return Error::Ok;
}

// "COP1", then actions: configuration (two words follow), padding, commands (their number of words in the
// action).
Error parse_cop1(Span<const uint8_t> payload, Stream* out) {
  Words words(payload);
  bool configured = false;
  for (size_t offset = 4;; offset += 4) {
    const uint32_t action = words.at(offset);
    if (words.truncated()) return truncated(offset);
    switch (static_cast<Action>(action & 0xFF)) {
      case Action::Config:
        out->config = words.at(offset + 4);
        out->id = words.at(offset + 8);
        configured = true;
        offset += 8;
        break;
      case Action::Nop:
        break;
      case Action::Commands: {
        if (!configured)
          return fail(Error::InvalidProgram, "command stream: does not say what NPU it is for");
        const uint64_t count = action >> 16 | (action >> 8 & 0xFF) << 16;
        return cut(payload, offset + 4, offset + 4 + 4 * count, out);
      }
      default:
        return fail(Error::NotSupported, "command stream (byte %zu): driver action %u", offset,
                    static_cast<unsigned>(action & 0xFF));
    }
  }
}

// "COP2", version, u64 size of what follows; one entry: type 1, length, metadata, padding to 16, commands.
// Metadata: length, "VEUM", version, length of the rest, CONFIG, ID, flags, staging bytes.
Error parse_cop2(Span<const uint8_t> payload, Stream* out) {
  Words words(payload);
  const uint64_t end = 16 + (words.at(8) | static_cast<uint64_t>(words.at(12)) << 32);
  const uint32_t type = words.at(16);
  const uint64_t metadata = words.at(24);
  const uint32_t mark = words.at(28);
  out->config = words.at(40);
  out->id = words.at(44);
  if (words.truncated()) return truncated(payload.size);
  if (type != 1 || mark != kVeum) {
    return fail(Error::NotSupported, "command stream: COP2 entry of type %u without its \"VEUM\" mark",
                static_cast<unsigned>(type));
  }
  const uint64_t start = (24 + metadata + 15) / 16 * 16;
  if (start > payload.size) return truncated(payload.size);
  return cut(payload, static_cast<size_t>(start), end, out);
}

// Opcodes of the one-word commands that select a region for what follows.
constexpr uint32_t kRegionCommands[] = {
    0x10F,  // IFM_REGION
    0x18F,  // IFM2_REGION
    0x11F,  // OFM_REGION
    0x128,  // WEIGHT_REGION
    0x129,  // SCALE_REGION
    0x130,  // DMA0_SRC_REGION
    0x131,  // DMA0_DST_REGION
    0x134,  // DMA0_IDX_REGION (U85)
};
constexpr uint32_t kOpcodeMask = 0x3FF;
constexpr uint32_t kTwoWords = 1 << 14;
constexpr uint32_t kInternal = 1 << 8;  // of a DMA's region: memory inside the NPU

bool selects_region(uint32_t word) {
  for (uint32_t opcode : kRegionCommands) {
    if ((word & kOpcodeMask) == opcode) return true;
  }
  return false;
}

}  // namespace

Error Stream::parse(Span<const uint8_t> payload, Stream* out) {
  const uint32_t magic = Words(payload).at(0);
  if (magic == kCop1) return parse_cop1(payload, out);
  if (magic == kCop2) return parse_cop2(payload, out);
  return fail(Error::InvalidProgram, "command stream: starts with %08x, neither COP1 nor COP2",
              static_cast<unsigned>(magic));
}

uint32_t Stream::regions() const {
  uint32_t found = 0;
  for (size_t offset = 0; offset < commands.size; offset += 4) {
    uint32_t word;
    memcpy(&word, commands.data + offset, sizeof word);
    const uint32_t parameter = word >> 16;
    if ((word & kTwoWords) != 0) {
      offset += 4;
    } else if (selects_region(word) && (parameter & kInternal) == 0) {
      found |= 1u << (parameter & 7);
    }
  }
  return found;
}

}  // namespace armdeploy::ethosu
