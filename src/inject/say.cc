// SPDX-License-Identifier: Apache-2.0
#include "inject/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gpoeo::inject {

void say(const char* format, ...) {
  const char* asked = getenv(kLogEnv);
  if (asked == nullptr || strcmp(asked, "1") != 0) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "gpoeo-inject[%ld]: %s\n", static_cast<long>(getpid()), line);
}

}  // namespace gpoeo::inject
