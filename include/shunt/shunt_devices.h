/* The devices of a machine for C: their records, why an API offers none, and their selection by criteria. Part of
 * shunt/shunt.h, which includes it.
 *
 * Structs that the library fills begin with `size`, which the caller sets to the sizeof of the struct: a library that
 * knows more fields fills no more than that, and one that knows fewer fills the rest with zeros. Structs that the
 * caller fills begin with all zeros. Text that an object answers lives as long as the object; any thread may ask.
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

/* SHUNT_FEATURE_fp16, ...: the number of a bit in shunt_device_info.features and shunt_requirements.features. */
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

/* SHUNT_STAGE_started, SHUNT_STAGE_no_library, ...: how far an API came. */
typedef enum shunt_start_stage SHUNT_ENUM_TYPE {
#define SHUNT_START_STAGE(stage, name) SHUNT_STAGE_##stage,
  SHUNT_START_STAGES(SHUNT_START_STAGE)
#undef SHUNT_START_STAGE
      SHUNT_STAGE_COUNT
} shunt_start_stage;
/* "started", "library not found", ...; NULL past the last. */
SHUNT_API const char* shunt_start_stage_name(shunt_start_stage stage);

/* A number of bytes that nobody knows, or that is not limited. */
#define SHUNT_NO_BYTES UINT64_MAX

/* One device. What its API does not tell is "" or 0. */
typedef struct shunt_device_info {
  size_t size;                  /* set by the caller: sizeof(shunt_device_info) */
  const char* id;               /* stable: API and which one, "vulkan:0" */
  const char* api;              /* "vulkan" */
  const char* name;             /* in the driver's words */
  const char* vendor;           /* of the hardware */
  shunt_device_type type;       /* what it is */
  int emulated;                 /* 1: computes on the processor what is made for a GPU; used only where it is named */
  const char* driver;           /* its name and version */
  const char* api_version;      /* "Vulkan 1.3" */
  const char* uuid;             /* 32 hexadecimal digits, the same through each API */
  const char* pci_address;      /* "0000:65:00.0" */
  const char* hardware;         /* vendor and device as PCI numbers them, "10de:2330" */
  const char* compute_resource; /* devices with the same one compete for the same processors */
  const char* memory_resource;  /* devices with the same one take from the same memory, whose bytes count once */
  const char* memory_pool;      /* devices with the same one see each other's buffers: no copies between them */
  int links_to_peers;           /* 1: copies between devices that have it do not go through the host's memory */
  uint32_t features;            /* bits SHUNT_FEATURE_BIT(SHUNT_FEATURE_fp16), ... */
  const char* details;          /* more features, in the API's own words with spaces between: "AVX3" */
  uint64_t memory_bytes;        /* of memory_resource, in all */
  uint64_t free_memory_bytes;   /* of memory_resource, when it was asked; SHUNT_NO_BYTES: not known */
  uint64_t budget_bytes;        /* of a runtime's device, that may be used; SHUNT_NO_BYTES: as many as are asked for */
  uint64_t alignment_bytes;     /* of tensors in its memory */
  uint64_t largest_binding_bytes; /* of a tensor that a kernel reads; SHUNT_NO_BYTES: not limited */
  uint64_t shared_memory_bytes;   /* of a workgroup */
  uint32_t largest_workgroup;     /* invocations */
  uint32_t subgroup_size;         /* invocations */
  uint32_t compute_units;         /* multiprocessors of a GPU; threads of a processor */
  uint32_t clock_mhz;             /* the highest, in MHz */
} shunt_device_info;

/* One API, such as Vulkan. */
typedef struct shunt_api_info {
  size_t size;             /* set by the caller: sizeof(shunt_api_info) */
  const char* name;        /* "vulkan" */
  shunt_start_stage stage; /* how far it came */
  const char* reason;      /* of one without devices: why, and what helps; else "" */
  const char* hint;        /* of one with devices: what would help to get more; "": nothing that is known */
  size_t device_count;     /* of its devices */
  double start_ms;         /* what library and driver took to start, in milliseconds */
  int is_known;            /* 1: found earlier, and nothing has changed since */
} shunt_api_info;

typedef struct shunt_find_options {
  int again;             /* 1: start each driver again, even if nothing has changed since it was */
  uint32_t threads;      /* of the processor; 0: one per core */
  const char* simulated; /* devices to list too that are made up where they are named, "sim:0,sim:1"; NULL: none */
} shunt_find_options;

/* What each API of this machine offers. Drivers that are not known are started in processes of their own, all at once,
 * and given 5 s each. `options` may be NULL; the result ends by shunt_found_free(). */
typedef struct shunt_found shunt_found;
SHUNT_API shunt_found* shunt_find_devices(const shunt_find_options* options, shunt_error* error);
SHUNT_API void shunt_found_free(shunt_found* found);
SHUNT_API size_t shunt_found_api_count(const shunt_found* found);
SHUNT_API shunt_code shunt_found_api(const shunt_found* found, size_t index, shunt_api_info* info, shunt_error* error);
/* The devices of all APIs, in the order in which they are preferred. */
SHUNT_API size_t shunt_found_device_count(const shunt_found* found);
SHUNT_API shunt_code shunt_found_device(const shunt_found* found, size_t index, shunt_device_info* info,
                                        shunt_error* error);

/* What a device must have to be chosen. */
typedef struct shunt_requirements {
  uint64_t min_memory_bytes; /* a device of unknown memory has none */
  uint32_t features;         /* bits SHUNT_FEATURE_BIT(SHUNT_FEATURE_fp16), ... */
  const char* vendor;        /* a part of its vendor's name, in whatever case; NULL: any */
  const char* type;          /* "discrete", "integrated", ...; NULL: any */
  int (*accept)(void* user, const shunt_device_info* device); /* 0: not this one; NULL: any */
  void* user;                                                 /* of accept */
} shunt_requirements;

/* A device's id or the name of an API, and what it must have besides what all must have. */
typedef struct shunt_candidate {
  const char* name;
  shunt_requirements requirements;
} shunt_candidate;

/* Which devices to use: those of the chain in its order, then the others by score, the processor last. A device that
 * fails to start is passed over, and the next one is tried. Emulated devices are used only where the chain names them;
 * of the devices that are one processor, the one preferred most is used. */
typedef struct shunt_device_selector {
  shunt_requirements requirements; /* of every device */
  const shunt_candidate* chain;
  size_t chain_count;
  int only_chain;                                               /* 1: no others */
  int prefers_discrete;                                         /* 1: among the others, discrete GPUs come first */
  int without_cpu;                                              /* 1: not the processor, unless the chain names it */
  size_t most;                                                  /* devices to take; 0: any number */
  double (*score)(void* user, const shunt_device_info* device); /* the greater, the better; NULL: promised arithmetic */
  void* user;                                                   /* of score */
} shunt_device_selector;

/* A device or an API that a runtime does not use, and why. */
typedef struct shunt_rejection {
  size_t size;        /* set by the caller: sizeof(shunt_rejection) */
  const char* id;     /* of a device, or the name of an API */
  const char* reason; /* why, with numbers */
} shunt_rejection;

/* The record of a device that a runtime uses, 0 to shunt_device_count() - 1 in order of preference. */
SHUNT_API shunt_code shunt_device_describe(const shunt_runtime* runtime, size_t index, shunt_device_info* info,
                                           shunt_error* error);
/* What it does not use and why, where that is known. */
SHUNT_API size_t shunt_rejection_count(const shunt_runtime* runtime);
SHUNT_API shunt_code shunt_rejection_describe(const shunt_runtime* runtime, size_t index, shunt_rejection* rejection,
                                              shunt_error* error);
/* What the user should hear of the runtime's start, such as measurements that could not be read; NULL past the last. */
SHUNT_API size_t shunt_warning_count(const shunt_runtime* runtime);
SHUNT_API const char* shunt_warning(const shunt_runtime* runtime, size_t index);

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */

#endif /* SHUNT_SHUNT_DEVICES_H */
