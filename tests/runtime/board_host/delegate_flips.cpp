// SPDX-License-Identifier: Apache-2.0
// The Ethos-U delegate and driver on the host, against registers that are plain memory: loads and executes a
// program with every byte changed in turn. Sanitizers watch; a copy of exactly the file's size has guards
// behind it.
//
//   delegate_flips PROGRAM CONFIG_WORD ID_WORD     prints "RAN n REFUSED m" of the changed programs
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "board_config.h"
#include "runtime/core/method.h"
#include "runtime/core/program.h"
#include "runtime/core/registry.h"
#include "runtime/ethosu/driver.h"
#include "runtime/ethosu/registers.h"

namespace armdeploy {

const Kernel kKernels[] = {{"", nullptr}};
const size_t kKernelCount = 0;

namespace {

void set_register(uint32_t offset, uint32_t value) { board::npu_registers[offset / 4] = value; }

// An NPU that is out of reset, always has ended its job, and has a raised interrupt.
void power_up(uint32_t config, uint32_t id) {
  using namespace ethosu;
  set_register(reg::CONFIG, config);
  set_register(reg::ID, id);
  set_register(reg::PROT, 1);
  set_register(reg::STATUS, status::IRQ_RAISED | status::CMD_END_REACHED);
}

constexpr size_t kPool = 512 * 1024;  // a fast scratch is 384 KiB

bool runs(const uint8_t* bytes, size_t size) {
  static uint8_t* pools = static_cast<uint8_t*>(aligned_alloc(64, 2 * kPool));
  Arena method(pools, kPool, "method"), temp(pools + kPool, kPool, "temp");
  MethodMemory memory;
  memory.method = &method;
  memory.temp = &temp;
  Program program;
  if (Program::load({bytes, size}, &program) != Error::Ok || program.method_count() == 0) return false;
  Method loaded;
  if (Method::load(program, "forward", memory, &loaded) != Error::Ok) return false;
  for (size_t index = 0; index < loaded.input_count(); ++index) {
    if (Tensor* input = loaded.input_tensor(index)) memset(input->data, 1, input->nbytes());
  }
  return loaded.execute(1000) == Error::Ok;
}

std::vector<uint8_t> read_file(const char* path) {
  std::vector<uint8_t> bytes;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return bytes;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) bytes.push_back(static_cast<uint8_t>(c));
  std::fclose(file);
  return bytes;
}

int run_all(const std::vector<uint8_t>& original) {
  const size_t size = original.size();
  std::unique_ptr<uint8_t, void (*)(void*)> copy(static_cast<uint8_t*>(aligned_alloc(16, size)), std::free);
  memcpy(copy.get(), original.data(), size);
  if (!runs(copy.get(), size)) return std::puts("the program itself does not run"), 1;
  size_t ran = 0;
  for (size_t index = 0; index < size; ++index) {
    copy.get()[index] = static_cast<uint8_t>(~copy.get()[index]);
    ran += runs(copy.get(), size) ? 1 : 0;
    copy.get()[index] = original[index];
  }
  std::printf("RAN %zu REFUSED %zu\n", ran, size - ran);
  return 0;
}

}  // namespace
}  // namespace armdeploy

int main(int count, char** words) {
  if (count != 4) return 2;
  std::vector<uint8_t> program = armdeploy::read_file(words[1]);
  program.resize((program.size() + 15) / 16 * 16);
  armdeploy::power_up(static_cast<uint32_t>(std::strtoul(words[2], nullptr, 0)),
                      static_cast<uint32_t>(std::strtoul(words[3], nullptr, 0)));
  return armdeploy::run_all(program);
}
