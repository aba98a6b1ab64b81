// Writes the models of cache-cases.mjs into a folder, for a Triton with the Python backend; with a URL, asks them and writes the answers to
// test/goldens/triton/cache.json:
//
//     node tools/reference/triton/record-cache.mjs DIR
//     tritonserver --model-repository DIR --cache-directory caches --cache-config local,size=1048576 --backend-directory backends
//     node tools/reference/triton/record-cache.mjs DIR http://localhost:9000 http://localhost:9002/metrics
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_MODELS, cacheConfigOf, playCache } from './cache-cases.mjs';

const CODE = `import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.executions = 0

    def execute(self, requests):
        self.executions += 1
        answers = []
        for request in requests:
            rows = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if (rows < 0).any():
                error = pb_utils.TritonError("it was asked to fail")
                answers.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            told = np.array([[*row, self.executions] for row in rows], dtype=np.int32)
            tensors = {"Y": told, "Z": 2 * rows}
            wanted = request.requested_output_names()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor(name, tensors[name]) for name in wanted]))
        return answers
`;

const [directory, url, metrics] = process.argv.slice(2);
if (url === undefined) {
  for (const name of Object.keys(CACHE_MODELS)) {
    mkdirSync(join(directory, name, '1'), { recursive: true });
    writeFileSync(join(directory, name, 'config.pbtxt'), `backend: "python"\n${cacheConfigOf(name)}`);
    writeFileSync(join(directory, name, '1/model.py'), CODE);
  }
} else {
  const { version } = await (await fetch(`${url}/v2`)).json();
  const models = [];
  for (const name of Object.keys(CACHE_MODELS)) models.push(await playCache(url, name, metrics));
  const file = new URL('../../../test/goldens/triton/cache.json', import.meta.url);
  writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, models }, null, 1)}\n`);
}
