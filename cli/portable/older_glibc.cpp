// Lets a program that was built with glibc 2.38 or newer run on an older one. The newer headers redirect C++ to these
// four functions, which an older glibc lacks. They differ from those of C17 in reading binary numbers ("0b1"). This
// file defines them as those of C17, also for statically linked libraries.
#include <cstdarg>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl*,readability-identifier-naming): glibc's own names
extern "C" {

long long strtoll_of_c17(const char* text, char** end, int base) __asm__("strtoll");
unsigned long strtoul_of_c17(const char* text, char** end, int base) __asm__("strtoul");
unsigned long long strtoull_of_c17(const char* text, char** end, int base) __asm__("strtoull");
int vsscanf_of_c17(const char* text, const char* format, std::va_list arguments) __asm__("vsscanf");

long long __isoc23_strtoll(const char* text, char** end, int base);
unsigned long __isoc23_strtoul(const char* text, char** end, int base);
unsigned long long __isoc23_strtoull(const char* text, char** end, int base);
int __isoc23_sscanf(const char* text, const char* format, ...);

long long __isoc23_strtoll(const char* text, char** end, int base) { return strtoll_of_c17(text, end, base); }
unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return strtoul_of_c17(text, end, base); }
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return strtoull_of_c17(text, end, base);
}
int __isoc23_sscanf(const char* text, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int count = vsscanf_of_c17(text, format, arguments);
  va_end(arguments);
  return count;
}
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl*,readability-identifier-naming)
