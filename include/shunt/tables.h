/* Tables of the public interface as X macros, which the C++ and C headers expand. Macro definitions only; any compiler.
 */
#pragma once

/* X(enumerator, name in C, meaning): why a call failed. */
#define SHUNT_ERROR_CODES(X)                                                           \
  X(invalid, INVALID, "the input breaks a stated rule; the same call will fail again") \
  X(unsupported, UNSUPPORTED, "well formed, but nothing here can do it")               \
  X(out_of_memory, OUT_OF_MEMORY, "an allocation or a memory budget failed")           \
  X(device_lost, DEVICE_LOST, "a device stopped answering; its memory is gone")        \
  X(timed_out, TIMED_OUT, "a submission did not finish within its time limit")         \
  X(io, IO, "a file could not be read or written, or changed while in use")            \
  X(internal, INTERNAL, "a library or driver broke its own contract")                  \
  X(interrupted, INTERRUPTED, "the caller ended the call early")

/* X(enumerator, name): types of devices. */
#define SHUNT_DEVICE_TYPES(X) \
  X(discrete, "discrete")     \
  X(integrated, "integrated") \
  X(virtual_gpu, "virtual")   \
  X(cpu, "cpu")               \
  X(other, "other")

/* X(enumerator, name, meaning): features that kernels and transfers can use. */
#define SHUNT_DEVICE_FEATURES(X)                                                                  \
  X(fp16, "fp16", "arithmetic in half precision")                                                 \
  X(fp64, "fp64", "arithmetic in double precision")                                               \
  X(bf16, "bf16", "arithmetic or matrix products of bfloat16")                                    \
  X(int8, "int8", "sums of products of 8-bit integers in one instruction")                        \
  X(atomics, "atomics", "atomic operations on integers in memory")                                \
  X(shared_memory, "shared-memory", "memory that the invocations of a workgroup share")           \
  X(subgroups, "subgroups", "invocations that exchange values without memory")                    \
  X(cooperative_matrix, "cooperative-matrix", "units that multiply matrices")                     \
  X(async_transfers, "async-transfers", "separate engines that copy during computations")         \
  X(unified_memory, "unified-memory", "memory shared with the host, so nothing has to be copied") \
  X(timestamps, "timestamps", "start and end times of each op from the device")

/* X(enumerator, name): how far the start of an API got. */
#define SHUNT_START_STAGES(X)           \
  X(started, "started")                 \
  X(not_asked, "not asked for")         \
  X(not_built, "not built")             \
  X(no_library, "library not found")    \
  X(no_start, "library does not start") \
  X(no_device, "no device")             \
  X(lacks, "lacks a needed feature")    \
  X(crashed, "crashed")                 \
  X(timed_out, "timed out")

/* X(enumerator, name, unit): what a long call is doing, and the unit of its progress. */
#define SHUNT_PROGRESS_KINDS(X)                     \
  X(reading_model, "reading the model", "bytes")    \
  X(copying_weights, "copying weights", "bytes")    \
  X(measuring, "measuring devices", "measurements") \
  X(reading_prompt, "reading the prompt", "tokens")
