// Writes the models and ensembles of ensemble-cases.mjs into a folder, for a Triton with the Python backend:
//
//     node tools/reference/triton/write-ensemble-models.mjs DIR
//
// ensemble-goldens.test.ts has the same models in JavaScript.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENSEMBLES, MODELS, REFUSED } from './ensemble-cases.mjs';

const ANSWERS = {
  add: 'respond(Y=X + 1)',
  sum: 'respond(Y=X if W is None else X + W)',
  pair: 'respond(Y=X + 1, Z=X - 1)',
  partly: 'respond(Y=X + 1)',
  echo: 'respond(Y=X)',
  failing:
    'pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError("it was asked to fail"))',
};

const MODEL = (answer) => `import triton_python_backend_utils as pb_utils


def respond(**outputs):
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, data) for name, data in outputs.items()])


class TritonPythonModel:
    def answer(self, request):
        X, W = (pb_utils.get_input_tensor_by_name(request, name) for name in ("X", "W"))
        X, W = (None if one is None else one.as_numpy() for one in (X, W))
        return ${answer}

    def execute(self, requests):
        return [self.answer(request) for request in requests]
`;
const REPEAT = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            X = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            sender = request.get_response_sender()
            for i in range(int(X.flat[0]) % 9):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", X + 1 + i)]))
            flags = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
            if X.flat[0] > 9:
                error = pb_utils.TritonError("it was asked to fail")
                sender.send(pb_utils.InferenceResponse(output_tensors=[], error=error), flags=flags)
            else:
                sender.send(flags=flags)
`;

const [folder] = process.argv.slice(2);
for (const [name, [kind, config]] of Object.entries(MODELS)) {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  const instances = 'instance_group [ { count: 1 kind: KIND_CPU } ]\n';
  writeFileSync(join(folder, name, 'config.pbtxt'), `backend: "python"\n${config}${instances}`);
  writeFileSync(join(folder, name, '1/model.py'), kind === 'repeat' ? REPEAT : MODEL(ANSWERS[kind]));
}
for (const [name, config] of Object.entries({ ...ENSEMBLES, ...REFUSED })) {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.pbtxt'), config);
}
