// Writes the models of batch-cases.mjs into a folder, for a Triton with the Python backend:
//
//     node tools/reference/triton/write-batch-models.mjs DIR
//
// Files by which they are kept lie in DIR as well.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { configOf, filesOf, SERIES } from './batch-cases.mjs';

const code = ({ started, gate }) => `import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.executions = 0

    def execute(self, requests):
        self.executions += 1
        inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        if any((rows == 0).any() for rows in inputs):
            open("${started}", "w").close()
            while not os.path.exists("${gate}"):
                time.sleep(0.002)
        answers = []
        for rows in inputs:
            if (rows < 0).any():
                error = pb_utils.TritonError("it was asked to fail")
                answers.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            told = np.array([[len(requests), self.executions]] * len(rows), dtype=np.int32)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", told)]))
        return answers
`;

const directory = resolve(process.argv[2]);
for (const name of Object.keys(SERIES)) {
  mkdirSync(join(directory, name, '1'), { recursive: true });
  writeFileSync(join(directory, name, 'config.pbtxt'), `backend: "python"\n${configOf(name)}`);
  writeFileSync(join(directory, name, '1/model.py'), code(filesOf(directory, name)));
}
