// SPDX-License-Identifier: Apache-2.0
#include "cupti/metric_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/activity.h"

namespace gpoeo::cupti {
namespace {

// Cuts the next word off `*rest`; nullptr at the end of the line.
char* next_word(char** rest) {
  char* word = *rest + strspn(*rest, " \t\r");
  if (*word == '\0' || *word == '#') return nullptr;
  char* end = word + strcspn(word, " \t\r");
  *rest = *end == '\0' ? end : end + 1;
  *end = '\0';
  return word;
}

}  // namespace

MetricList parse_metrics(char* text, const char* chip) {
  MetricList list;
  bool ours = false;
  for (char* line = text; line != nullptr;) {
    char* end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    char* rest = line;
    line = end == nullptr ? nullptr : end + 1;
    const char* key = next_word(&rest);
    if (key == nullptr) continue;
    const char* value = next_word(&rest);
    if (strcmp(key, "chip") == 0) {
      ours = value != nullptr && strcmp(value, chip) == 0;
    } else if (!ours) {
      continue;
    } else if (strcmp(key, "pass") == 0) {
      if (list.count == kMostPasses) return list;
      ++list.count;
    } else if (const ActivityWord* word = find_activity(std::string_view(key));
               word != nullptr && value != nullptr && list.count > 0) {
      MetricPass& pass = list.passes[list.count - 1];
      if (pass.count == kMostPassMetrics) continue;
      pass.metrics[pass.count] = value;
      pass.words[pass.count] = word->number;
      ++pass.count;
    }
  }
  return list;
}

}  // namespace gpoeo::cupti
