// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/options.h"

#include <cstring>

namespace armdeploy {
namespace {

enum class Key : uint8_t { Model, Input, Output, Method, EtDump, RunId, NumInferences, Bundle };

struct Flag {
  const char* name;
  Key key;
};

constexpr Flag kFlags[] = {
    {"-m", Key::Model},        {"--model", Key::Model},
    {"-i", Key::Input},        {"--input", Key::Input},
    {"-o", Key::Output},       {"--output", Key::Output},
    {"--method", Key::Method}, {"--etdump", Key::EtDump},
    {"--run-id", Key::RunId},  {"--num-inferences", Key::NumInferences},
    {"--bundle", Key::Bundle},
};

// Takes the next word off `rest`; null at the end. Double quotes around a part keep blanks in it.
char* next_word(char** rest) {
  char* from = *rest;
  while (*from == ' ' || *from == '\t') ++from;
  if (*from == '\0') return nullptr;
  char* word = from;
  char* to = from;
  for (bool quoted = false; *from != '\0' && (quoted || (*from != ' ' && *from != '\t')); ++from) {
    if (*from == '"') {
      quoted = !quoted;
    } else {
      *to++ = *from;
    }
  }
  *rest = *from == '\0' ? from : from + 1;
  *to = '\0';
  return word;
}

const Flag* find_flag(const char* word, size_t length) {
  for (const Flag& flag : kFlags) {
    if (strlen(flag.name) == length && memcmp(flag.name, word, length) == 0) return &flag;
  }
  return nullptr;
}

Error parse_count(const char* text, uint32_t* out) {
  uint32_t value = 0;
  const char* digit = text;
  while (*digit >= '0' && *digit <= '9' && value < 1000000) {
    value = value * 10 + static_cast<uint32_t>(*digit++ - '0');
  }
  if (*digit != '\0' || value == 0) {
    return fail(Error::InvalidArgument, "command line: \"%s\" is not a number of inferences", text);
  }
  *out = value;
  return Error::Ok;
}

Error add_input(const char* path, Options* out) {
  if (out->input_count == kMaxInputs) {
    return fail(Error::InvalidArgument, "command line: more than %zu inputs", kMaxInputs);
  }
  out->inputs[out->input_count++] = path;
  return Error::Ok;
}

Error set_option(Key key, const char* value, Options* out) {
  switch (key) {
    case Key::Input:
      return add_input(value, out);
    case Key::NumInferences:
      return parse_count(value, &out->num_inferences);
    case Key::Model:
      out->model = value;
      break;
    case Key::Output:
      out->output = value;
      break;
    case Key::Method:
      out->method = value;
      break;
    case Key::EtDump:
      out->etdump = value;
      break;
    case Key::RunId:
      out->run_id = value;
      break;
    case Key::Bundle:
      break;
  }
  return Error::Ok;
}

}  // namespace

Error parse_options(char* line, Options* out) {
  next_word(&line);  // the program's name
  while (char* word = next_word(&line)) {
    char* equals = word[0] == '-' && word[1] == '-' ? strchr(word, '=') : nullptr;
    const size_t length = equals != nullptr ? static_cast<size_t>(equals - word) : strlen(word);
    const Flag* flag = find_flag(word, length);
    if (flag == nullptr) return fail(Error::InvalidArgument, "command line: unknown option \"%s\"", word);
    if (flag->key == Key::Bundle) {
      out->bundle = true;
      continue;
    }
    const char* value = equals != nullptr ? equals + 1 : next_word(&line);
    if (value == nullptr)
      return fail(Error::InvalidArgument, "command line: \"%s\" needs a value", flag->name);
    if (Error error = set_option(flag->key, value, out); error != Error::Ok) return error;
  }
  return Error::Ok;
}

}  // namespace armdeploy
