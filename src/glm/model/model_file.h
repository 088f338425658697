/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a model, version 1; docs/glm.md describes it. What is read is checked first. */
#ifndef TRIB_GLM_MODEL_FILE_H
#define TRIB_GLM_MODEL_FILE_H

#include "glm/model/glm_model.h"

/* The error has no file name in it. */
trib_status model_parse(const uint8_t *bytes, size_t n, trib_glm_model **model);

#endif
