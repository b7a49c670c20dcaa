// SPDX-License-Identifier: Apache-2.0
// The System Control Space registers that start-up, fault handler and interrupts use (Armv8-M ARM, D1.1), as
// data.
#pragma once

#include <cstdint>

namespace armdeploy::scs {

constexpr uintptr_t kDwtCtrl = 0xE0001000;
constexpr uintptr_t kDwtCycleCount = 0xE0001004;
constexpr uintptr_t kNvicEnable = 0xE000E100;
constexpr uintptr_t kVectorTable = 0xE000ED08;
constexpr uintptr_t kConfigurationControl = 0xE000ED14;
constexpr uintptr_t kSystemHandlerControl = 0xE000ED24;
constexpr uintptr_t kConfigurableFaultStatus = 0xE000ED28;
constexpr uintptr_t kHardFaultStatus = 0xE000ED2C;
constexpr uintptr_t kMemManageAddress = 0xE000ED34;
constexpr uintptr_t kBusFaultAddress = 0xE000ED38;
constexpr uintptr_t kCoprocessorAccess = 0xE000ED88;
constexpr uintptr_t kDebugMonitorControl = 0xE000EDFC;
constexpr uintptr_t kCacheSizeId = 0xE000ED80;
constexpr uintptr_t kInstructionCacheInvalidateAll = 0xE000EF50;
constexpr uintptr_t kDataCacheCleanByAddress = 0xE000EF68;
constexpr uintptr_t kDataCacheInvalidateByAddress = 0xE000EF5C;
constexpr uintptr_t kDataCacheInvalidateBySetWay = 0xE000EF60;

constexpr uint32_t kFullFloatingPointAccess = 0xF << 20;         // CPACR: CP10 and CP11
constexpr uint32_t kTrapDivideByZero = 1 << 4;                   // CCR
constexpr uint32_t kInstructionCacheEnable = 1 << 17;            // CCR
constexpr uint32_t kDataCacheEnable = 1 << 16;                   // CCR
constexpr uint32_t kEnableFaults = 1 << 16 | 1 << 17 | 1 << 18;  // SHCSR: MemManage, BusFault, UsageFault
constexpr uint32_t kTraceEnable = 1 << 24;                       // DEMCR
constexpr uint32_t kCycleCountEnable = 1;                        // DWT_CTRL
constexpr uint32_t kNoCycleCount = 1 << 25;                      // DWT_CTRL

inline volatile uint32_t& reg(uintptr_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

}  // namespace armdeploy::scs
