// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef GPOEO_VERSION
#define GPOEO_VERSION "unknown"
#endif
