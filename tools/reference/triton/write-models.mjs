// Writes the models that typed-cases.mjs asks into a folder, for a Triton with the Python backend:
//
//     node tools/reference/triton/write-models.mjs DIR
//
// Each answers what it is given; `failing` raises an error. typed-goldens.test.ts has the same in JavaScript.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MODELS } from './typed-cases.mjs';

const IDENTITY = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "INPUT0") for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", one.as_numpy())]) for one in found]
`;
const FAILING = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        error = pb_utils.TritonError("this model always fails")
        return [pb_utils.InferenceResponse(output_tensors=[], error=error) for _ in requests]
`;

const [folder] = process.argv.slice(2);
for (const { name, type, dims, batch = 0, labels } of MODELS) {
  const directory = join(folder, name);
  mkdirSync(join(directory, '1'), { recursive: true });
  const label = labels === undefined ? '' : ' label_filename: "labels.txt"';
  const config = [
    `backend: "python"`,
    `max_batch_size: ${batch}`,
    `input [ { name: "INPUT0" data_type: ${type} dims: [ ${dims.join(', ')} ] } ]`,
    `output [ { name: "OUTPUT0" data_type: ${type} dims: [ ${dims.join(', ')} ]${label} } ]`,
    'instance_group [ { count: 1 kind: KIND_CPU } ]',
  ];
  writeFileSync(join(directory, 'config.pbtxt'), `${config.join('\n')}\n`);
  writeFileSync(join(directory, '1/model.py'), name === 'failing' ? FAILING : IDENTITY);
  if (labels !== undefined) writeFileSync(join(directory, 'labels.txt'), `${labels.join('\n')}\n`);
}
