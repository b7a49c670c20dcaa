# SPDX-License-Identifier: Apache-2.0
# Cortex-M85 with GCC (arm-none-eabi-gcc). GCC 12 does not know the core by name; its architecture is
# Armv8.1-M with Helium. Pointer authentication is left out: QEMU runs this code on its Cortex-M55.
set(ARMDEPLOY_CPU_FLAGS -march=armv8.1-m.main+mve.fp+fp.dp -mtune=cortex-m55 -mfloat-abi=hard)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake)
