// SPDX-License-Identifier: Apache-2.0
// Errors are values. A call that the caller can go on after returns Result<T>; a broken
// invariant of the program itself aborts through GPOEO_CHECK. There is no third kind, and no
// exception crosses a module boundary.
#pragma once

#include <expected>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace gpoeo {

// Few kinds, each one that a caller can act on differently.
enum class ErrorKind {
  kInvalid,       // bad input: name the file, field and cure in the text
  kNotFound,      // no such thing (file, GPU, process)
  kNotSupported,  // this device, driver or build cannot do it; asking again will not help
  kNoPermission,  // it exists, but we may not; the text names the missing right
  kBusy,          // somebody else holds it; asking later may help
  kDeviceLost,    // the GPU fell off the bus or the driver went away
  kTimeout,       // the call did not come back in time
  kIo,            // the operating system refused: errno is in the text
};

std::string_view to_string(ErrorKind kind);

// What went wrong. `text` is one line that names what failed, where, and the cure if there is one.
struct Error {
  ErrorKind kind = ErrorKind::kInvalid;
  std::string text;
};

// std::expected that may not be dropped: an ignored "could not restore" is our worst fault.
template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};
using Status = Result<void>;

inline std::unexpected<Error> make_error(ErrorKind kind, std::string text) {
  return std::unexpected(Error{kind, std::move(text)});
}
// kIo or, for EACCES and EPERM, kNoPermission, or for ENOENT, kNotFound: "what: strerror(err)".
std::unexpected<Error> errno_error(std::string_view what, int err);
// Puts "context: " before the text and keeps the kind.
std::unexpected<Error> with_context(std::string_view context, const Error& error);

[[noreturn]] void check_failed(const char* condition, std::source_location where);

}  // namespace gpoeo

// Aborts with file and line when the program (not its input) is wrong.
#define GPOEO_CHECK(condition)                                                            \
  do {                                                                                    \
    if (!(condition)) ::gpoeo::check_failed(#condition, std::source_location::current()); \
  } while (false)

#define GPOEO_CONCAT_INNER(a, b) a##b
#define GPOEO_CONCAT(a, b) GPOEO_CONCAT_INNER(a, b)
// GPOEO_TRY(auto x, f()): x is the value, or the function returns f's error. __COUNTER__ keeps the
// names of nested uses (a lambda inside the expression) apart.
#define GPOEO_TRY(declaration, expression) \
  GPOEO_TRY_INNER(GPOEO_CONCAT(gpoeo_try_, __COUNTER__), declaration, expression)
#define GPOEO_TRY_INNER(name, declaration, expression)        \
  auto name = (expression);                                   \
  if (!name) return std::unexpected(std::move(name).error()); \
  declaration = std::move(name).value()
// GPOEO_TRY_STATUS(f()): the function returns f's error, if any.
#define GPOEO_TRY_STATUS(expression) \
  GPOEO_TRY_STATUS_INNER(GPOEO_CONCAT(gpoeo_status_, __COUNTER__), expression)
#define GPOEO_TRY_STATUS_INNER(name, expression)                \
  do {                                                          \
    auto name = (expression);                                   \
    if (!name) return std::unexpected(std::move(name).error()); \
  } while (false)
