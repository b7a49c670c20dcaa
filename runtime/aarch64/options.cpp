// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <cstdio>
#include <cstring>

namespace armdeploy {
namespace {

// What an option's value goes to: exactly one of the pointers is set.
struct Flag {
  const char* name;
  std::string Options::*text;
  uint32_t Options::*number;
};

constexpr Flag kFlags[] = {
    {"-m", &Options::model, nullptr},          {"--model", &Options::model, nullptr},
    {"-o", &Options::output, nullptr},         {"--output", &Options::output, nullptr},
    {"--method", &Options::method, nullptr},   {"--etdump", &Options::etdump, nullptr},
    {"--maps", &Options::maps, nullptr},       {"--run-id", &Options::run_id, nullptr},
    {"--isa", &Options::isa, nullptr},         {"--clock", &Options::clock, nullptr},
    {"--threads", nullptr, &Options::threads}, {"--num-inferences", nullptr, &Options::inferences},
    {"--warmup", nullptr, &Options::warmup},
};

bool refuse(const char* what, const std::string& value) {
  fprintf(stderr, "E command line: %s \"%s\"\n", what, value.c_str());
  return false;
}

bool parse_number(const std::string& text, uint32_t* out) {
  if (text.empty() || text.size() > 6) return false;
  uint32_t value = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9') return false;
    value = value * 10 + static_cast<uint32_t>(digit - '0');
  }
  *out = value;
  return true;
}

bool set_option(const std::string& name, const std::string& value, Options* out) {
  if (name == "-i" || name == "--input") {
    out->inputs.push_back(value);
    return true;
  }
  for (const Flag& flag : kFlags) {
    if (name != flag.name) continue;
    if (flag.text != nullptr) {
      out->*flag.text = value;
      return true;
    }
    return parse_number(value, &(out->*flag.number)) || refuse("not a number", value);
  }
  return refuse("unknown option", name);
}

bool check(const Options& options) {
  if (options.model.empty()) return refuse("no model, give -m FILE after", "executor_runner");
  if (options.isa != "sme2" && options.isa != "sme" && options.isa != "neon") {
    return refuse("--isa takes sme2, sme or neon, not", options.isa);
  }
  if (options.clock != "time" && options.clock != "calls") {
    return refuse("--clock takes time or calls, not", options.clock);
  }
  if (options.threads == 0 || options.inferences == 0) {
    return refuse("--threads and --num-inferences are at least 1, not", "0");
  }
  return true;
}

}  // namespace

bool parse_options(int count, char** words, Options* out) {
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const size_t equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos && at + 1 == count) return refuse("no value after", word);
    const std::string value = equals == std::string::npos ? words[++at] : word.substr(equals + 1);
    if (!set_option(name, value, out)) return false;
  }
  return check(*out);
}

}  // namespace armdeploy
