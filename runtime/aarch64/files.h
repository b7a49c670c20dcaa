// SPDX-License-Identifier: Apache-2.0
// Whole files in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace armdeploy {

// False after telling on stderr why not.
bool read_file(const std::string& path, std::vector<uint8_t>* out);
bool write_file(const std::string& path, const void* data, size_t size);

}  // namespace armdeploy
