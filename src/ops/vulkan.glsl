// Declares extensions in a Vulkan-only kernel, x.vulkan.comp. Include it before anything else, because extensions come
// first in a shader. The C preprocessor, which runs before the shader's own, would not pass their directive on.
#define SHUNT_HASH #
#define SHUNT_EXTENSION(name) SHUNT_HASH extension name : require
