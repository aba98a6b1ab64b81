import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MODELS } from './typed-cases.mjs';

/** A model that grpc-cases.ts asks, in Python for a Triton and in JavaScript for this server. */
interface GrpcModel {
  name: string;
  /** config.pbtxt, but for its backend. */
  config: readonly string[];
  labels?: readonly string[] | undefined;
  python: string;
  module: string;
}

const PYTHON =
  'import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n';

const IDENTITY = {
  python: `${PYTHON}    def execute(self, requests):
        found = [pb_utils.get_input_tensor_by_name(request, "INPUT0") for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", one.as_numpy())]) for one in found]
`,
  module:
    'export const execute = (all) => all.map(({ inputs }) => ({ outputs: { OUTPUT0: inputs.INPUT0 } }));',
};
const FAILING = {
  python: `${PYTHON}    def execute(self, requests):
        error = pb_utils.TritonError("this model always fails")
        return [pb_utils.InferenceResponse(output_tensors=[], error=error) for _ in requests]
`,
  module: "export const execute = (all) => all.map(() => ({ error: 'this model always fails' }));",
};
const ADD_SUB = {
  python: `${PYTHON}    def execute(self, requests):
        responses = []
        for request in requests:
            a, b = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "INPUT1"))
            outputs = [pb_utils.Tensor("OUTPUT0", a + b), pb_utils.Tensor("OUTPUT1", a - b)]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
`,
  module: `export const execute = (all) => all.map(({ inputs: { INPUT0: a, INPUT1: b } }) => ({ outputs: {
  OUTPUT0: { data: a.data.map((x, i) => x + b.data[i]), shape: a.shape },
  OUTPUT1: { data: a.data.map((x, i) => x - b.data[i]), shape: a.shape },
} }));`,
};
/** Each number is an answer; -1 is an error. */
const REPEAT = {
  python: `${PYTHON}    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for x in pb_utils.get_input_tensor_by_name(request, "IN").as_numpy():
                if x == -1:
                    sender.send(pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError("minus one")))
                else:
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([x], dtype=np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
`,
  module: `export async function* execute([request]) {
  for (const x of request.inputs.IN.data)
    yield [x === -1 ? { error: 'minus one' } : { outputs: { OUT: { data: Int32Array.of(x) } } }];
}`,
};

const tensor = (name: string, type: string, dims: readonly number[], more = '') =>
  `{ name: "${name}" data_type: ${type} dims: [ ${dims.join(', ')} ]${more} }`;

function allModels(): readonly GrpcModel[] {
  const typed = MODELS.map(
    ({ name, type, dims, batch = 0, labels }): GrpcModel => ({
      name,
      labels,
      config: [
        `max_batch_size: ${batch}`,
        `input [ ${tensor('INPUT0', type, dims)} ]`,
        `output [ ${tensor('OUTPUT0', type, dims, labels === undefined ? '' : ' label_filename: "labels.txt"')} ]`,
      ],
      ...(name === 'failing' ? FAILING : IDENTITY),
    }),
  );
  const sixteen = (name: string) => tensor(name, 'TYPE_INT32', [16]);
  return [
    ...typed,
    {
      name: 'add_sub',
      config: [
        'max_batch_size: 8',
        `input [ ${sixteen('INPUT0')}, ${sixteen('INPUT1')} ]`,
        `output [ ${sixteen('OUTPUT0')}, ${sixteen('OUTPUT1')} ]`,
      ],
      ...ADD_SUB,
    },
    {
      name: 'repeat_int32',
      config: [
        'max_batch_size: 0',
        'model_transaction_policy { decoupled: true }',
        `input [ ${tensor('IN', 'TYPE_INT32', [-1])} ]`,
        `output [ ${tensor('OUT', 'TYPE_INT32', [1])} ]`,
      ],
      ...REPEAT,
    },
  ];
}

/** Writes all models into a folder. */
export function writeGrpcModels(folder: string, backend: 'python' | 'module'): void {
  for (const model of allModels()) {
    const directory = join(folder, model.name);
    mkdirSync(join(directory, '1'), { recursive: true });
    const config = [
      `backend: "${backend}"`,
      ...model.config,
      'instance_group [ { count: 1 kind: KIND_CPU } ]',
    ];
    writeFileSync(join(directory, 'config.pbtxt'), `${config.join('\n')}\n`);
    writeFileSync(join(directory, `1/model.${backend === 'python' ? 'py' : 'mjs'}`), model[backend]);
    if (model.labels !== undefined)
      writeFileSync(join(directory, 'labels.txt'), `${model.labels.join('\n')}\n`);
  }
}
