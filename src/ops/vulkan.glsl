// What a kernel for Vulkan alone, x.vulkan.comp, may ask for. It includes this before anything else, as extensions come
// first in a shader; the C preprocessor, which goes before the shader's own, would not let their directive through.
#define SHUNT_HASH #
#define SHUNT_EXTENSION(name) SHUNT_HASH extension name : require
