// Writes the models of sequence-cases.mjs into a folder, for a Triton with the Python backend:
//
//     node tools/reference/triton/write-sequence-models.mjs DIR
//
// Files by which they are kept lie in DIR as well.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configOf, filesOf, SERIES } from './sequence-cases.mjs';

// A row that is not ready holds whatever is in memory: only those of a sequence may keep the instance.
const code = ({ started, gate }, rows) => `import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


def of(request, name):
    element = pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0]
    return len(element) if isinstance(element, bytes) else int(element)


class TritonPythonModel:
    def execute(self, requests):
        rows = [(request, of(request, "X"), of(request, "READY") == 1) for request in requests]
        if any(ready and x == 0 for _, x, ready in rows):
            open("${started}", "w").close()
            while not os.path.exists("${gate}"):
                time.sleep(0.002)
        answers = []
        for i, (request, x, ready) in enumerate(rows):
            if ready and x < 0:
                error = pb_utils.TritonError("it was asked to fail")
                answers.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            controls = [of(request, name) for name in ("START", "END", "READY", "CORRID")]
            told = np.array(${rows === 0 ? '[len(rows), i] + controls' : '[[len(rows), i] + controls]'}, dtype=np.int64)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", told)]))
        return answers
`;

const directory = resolve(process.argv[2]);
for (const [name, { rows }] of Object.entries(SERIES)) {
  mkdirSync(join(directory, name, '1'), { recursive: true });
  writeFileSync(join(directory, name, 'config.pbtxt'), `backend: "python"\n${configOf(name)}`);
  writeFileSync(join(directory, name, '1/model.py'), code(filesOf(directory, name), rows));
}
