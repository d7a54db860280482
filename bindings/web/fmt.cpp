// fmt's non-template functions, and the templates that its headers leave to its library. Debian has no such library for
// WebAssembly, and with FMT_HEADER_ONLY each source file would compile them again.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref locale) -> char;
template void buffer<char>::append(const char* begin, const char* end);
template void vformat_to(buffer<char>& out, string_view format, basic_format_args<FMT_BUFFER_CONTEXT(char)> arguments,
                         locale_ref locale);

}  // namespace detail
FMT_END_NAMESPACE
