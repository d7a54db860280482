/* The C interface to device discovery and selection. Part of shunt/shunt.h, which includes it.
 *
 * Structs that the library fills begin with `size`, which the caller sets to the struct's sizeof. A library with more
 * fields fills only that many bytes; one with fewer fields sets the rest to zero. Initialize structs that the caller
 * fills to all zeros. Text that a call returns lives as long as the object it came from. These calls are safe from many
 * threads.
 */
#ifndef SHUNT_SHUNT_DEVICES_H
#define SHUNT_SHUNT_DEVICES_H

#ifndef SHUNT_SHUNT_H
#error "include shunt/shunt.h"
#endif

#include "shunt/tables.h"

/* NOLINTBEGIN(readability-identifier-naming, modernize-use-using): names and types as C has them */

/* SHUNT_DEVICE_discrete, SHUNT_DEVICE_integrated, ... */
typedef enum shunt_device_type SHUNT_ENUM_TYPE {
#define SHUNT_DEVICE_TYPE(type, name) SHUNT_DEVICE_##type,
  SHUNT_DEVICE_TYPES(SHUNT_DEVICE_TYPE)
#undef SHUNT_DEVICE_TYPE
      SHUNT_DEVICE_TYPE_COUNT
} shunt_device_type;
/* "discrete", "virtual", ...; NULL past the last. */
SHUNT_API const char* shunt_device_type_name(shunt_device_type type);

/* SHUNT_FEATURE_fp16, ...: bit numbers in shunt_device_info.features and shunt_requirements.features. */
typedef enum shunt_feature SHUNT_ENUM_TYPE {
#define SHUNT_DEVICE_FEATURE(feature, name, meaning) SHUNT_FEATURE_##feature,
  SHUNT_DEVICE_FEATURES(SHUNT_DEVICE_FEATURE)
#undef SHUNT_DEVICE_FEATURE
      SHUNT_FEATURE_COUNT
} shunt_feature;
#define SHUNT_FEATURE_BIT(feature) (1u << (feature))
/* "fp16" and "arithmetic in half precision"; NULL past the last. */
SHUNT_API const char* shunt_feature_name(shunt_feature feature);
SHUNT_API const char* shunt_feature_meaning(shunt_feature feature);

/* SHUNT_STAGE_started, SHUNT_STAGE_no_library, ...: how far the start of an API got. */
typedef enum shunt_start_stage SHUNT_ENUM_TYPE {
#define SHUNT_START_STAGE(stage, name) SHUNT_STAGE_##stage,
  SHUNT_START_STAGES(SHUNT_START_STAGE)
#undef SHUNT_START_STAGE
      SHUNT_STAGE_COUNT
} shunt_start_stage;
/* "started", "library not found", ...; NULL past the last. */
SHUNT_API const char* shunt_start_stage_name(shunt_start_stage stage);

/* An unknown or unlimited number of bytes. */
#define SHUNT_NO_BYTES UINT64_MAX

/* One device. Fields that its API does not report are "" or 0. */
typedef struct shunt_device_info {
  size_t size;                    /* set by the caller: sizeof(shunt_device_info) */
  const char* id;                 /* stable: the API and which of its devices, "vulkan:0" */
  const char* api;                /* "vulkan" */
  const char* name;               /* as the driver reports it */
  const char* vendor;             /* vendor of the hardware */
  shunt_device_type type;         /* discrete GPU, CPU, ... */
  int emulated;                   /* 1: its driver computes on the CPU; used only if its id is given */
  const char* driver;             /* the driver's name and version */
  const char* api_version;        /* "Vulkan 1.3" */
  const char* uuid;               /* 32 hexadecimal digits, the same in every API */
  const char* pci_address;        /* "0000:65:00.0" */
  const char* hardware;           /* PCI ids of vendor and device, "10de:2330" */
  const char* compute_resource;   /* devices with the same value compete for the same processors */
  const char* memory_resource;    /* devices with the same value share one memory, which is counted once */
  const char* memory_pool;        /* devices with the same value see each other's buffers and need no copies */
  int links_to_peers;             /* 1: copies between devices with this flag bypass the host's memory */
  uint32_t features;              /* bits SHUNT_FEATURE_BIT(SHUNT_FEATURE_fp16), ... */
  const char* details;            /* more features in the API's own terms, separated by spaces: "AVX3" */
  uint64_t memory_bytes;          /* size of memory_resource */
  uint64_t free_memory_bytes;     /* free bytes of memory_resource when queried; SHUNT_NO_BYTES: unknown */
  uint64_t budget_bytes;          /* bytes that a runtime may use; SHUNT_NO_BYTES: no limit */
  uint64_t alignment_bytes;       /* alignment of tensors in its memory */
  uint64_t largest_binding_bytes; /* largest tensor that a kernel can read; SHUNT_NO_BYTES: no limit */
  uint64_t shared_memory_bytes;   /* per workgroup */
  uint32_t largest_workgroup;     /* invocations */
  uint32_t subgroup_size;         /* invocations */
  uint32_t compute_units;         /* a GPU's multiprocessors; a CPU's threads */
  uint32_t clock_mhz;             /* maximum */
} shunt_device_info;

/* One API, such as Vulkan. */
typedef struct shunt_api_info {
  size_t size;             /* set by the caller: sizeof(shunt_api_info) */
  const char* name;        /* "vulkan" */
  shunt_start_stage stage; /* how far its start got */
  const char* reason;      /* without devices: why, and what helps; else "" */
  const char* hint;        /* with devices: what would make more of them available; "": nothing known */
  size_t device_count;     /* number of its devices */
  double start_ms;         /* time that the library and the driver took to start */
  int is_known;            /* 1: cached, and nothing has changed since */
} shunt_api_info;

typedef struct shunt_find_options {
  int again;             /* 1: ignore the cached results and start each driver again */
  uint32_t threads;      /* CPU threads; 0: one per core */
  const char* simulated; /* simulated devices to list too, "sim:0,sim:1"; they exist only if named; NULL: none */
} shunt_find_options;

/* Returns what each API of this machine offers. Drivers without cached results start in their own processes, all at
 * once, and have 5 s each. `options` may be NULL. The caller frees the result with shunt_found_free(). */
typedef struct shunt_found shunt_found;
SHUNT_API shunt_found* shunt_find_devices(const shunt_find_options* options, shunt_error* error);
SHUNT_API void shunt_found_free(shunt_found* found);
SHUNT_API size_t shunt_found_api_count(const shunt_found* found);
SHUNT_API shunt_code shunt_found_api(const shunt_found* found, size_t index, shunt_api_info* info, shunt_error* error);
/* The devices of all APIs, in order of preference. */
SHUNT_API size_t shunt_found_device_count(const shunt_found* found);
SHUNT_API shunt_code shunt_found_device(const shunt_found* found, size_t index, shunt_device_info* info,
                                        shunt_error* error);

/* What a device must have to be selected. */
typedef struct shunt_requirements {
  uint64_t min_memory_bytes; /* a device whose memory is unknown counts as having none */
  uint32_t features;         /* bits SHUNT_FEATURE_BIT(SHUNT_FEATURE_fp16), ... */
  const char* vendor;        /* part of the vendor's name, case-insensitive; NULL: any */
  const char* type;          /* "discrete", "integrated", ...; NULL: any */
  int (*accept)(void* user, const shunt_device_info* device); /* returns 0 to reject a device; NULL: accepts all */
  void* user;                                                 /* passed to accept */
} shunt_requirements;

/* A device's id or the name of an API, with requirements beyond those of all devices. */
typedef struct shunt_candidate {
  const char* name;
  shunt_requirements requirements;
} shunt_candidate;

/* Selects devices: the chain in its order, then the others by score, the CPU last. If a device fails to start, the next
 * one is tried. Emulated devices are used only if the chain names them. If several devices are the same processor, only
 * the preferred one is used. */
typedef struct shunt_device_selector {
  shunt_requirements requirements; /* for every device */
  const shunt_candidate* chain;
  size_t chain_count;
  int only_chain;                                               /* 1: use no others */
  int prefers_discrete;                                         /* 1: among the others, discrete GPUs come first */
  int without_cpu;                                              /* 1: leave out the CPU unless the chain names it */
  size_t most;                                                  /* the largest number of devices to use; 0: any */
  double (*score)(void* user, const shunt_device_info* device); /* the highest is preferred; NULL: predicted speed */
  void* user;                                                   /* passed to score */
} shunt_device_selector;

/* A device or an API that a runtime does not use, and why. */
typedef struct shunt_rejection {
  size_t size;        /* set by the caller: sizeof(shunt_rejection) */
  const char* id;     /* a device's id or an API's name */
  const char* reason; /* why, with numbers */
} shunt_rejection;

/* Describes a device in use, 0 to shunt_device_count() - 1 in order of preference. */
SHUNT_API shunt_code shunt_device_describe(const shunt_runtime* runtime, size_t index, shunt_device_info* info,
                                           shunt_error* error);
/* The devices and APIs that are not in use, and why, as far as that is known. */
SHUNT_API size_t shunt_rejection_count(const shunt_runtime* runtime);
SHUNT_API shunt_code shunt_rejection_describe(const shunt_runtime* runtime, size_t index, shunt_rejection* rejection,
                                              shunt_error* error);
/* Messages for the user about the runtime's start, such as measurements that could not be read; NULL past the last. */
SHUNT_API size_t shunt_warning_count(const shunt_runtime* runtime);
SHUNT_API const char* shunt_warning(const shunt_runtime* runtime, size_t index);

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#endif /* SHUNT_SHUNT_DEVICES_H */
