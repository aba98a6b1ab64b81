// Asks a Triton the requests of typed-cases.mjs, and writes its answers to test/goldens/triton/typed.json:
//
//     node tools/reference/triton/write-models.mjs DIR
//     tritonserver --model-repository DIR ...          (as record.mjs says)
//     node tools/reference/triton/record-typed.mjs http://localhost:9000
import { writeFileSync } from 'node:fs';
import { ask } from './ask.mjs';
import { titleOf, typedCases } from './typed-cases.mjs';

const [url] = process.argv.slice(2);
const { version } = await (await fetch(`${url}/v2`)).json();
const answers = [];
for (const asked of typedCases) {
  const answer = await ask(url, asked).catch(() => ({ status: 0, body: '' }));
  answers.push({ request: titleOf(asked), ...answer });
  // Some requests end the server's process: status 0. The script that keeps it alive has it started again.
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 500));
}

async function isReady() {
  return fetch(`${url}/v2/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}
const file = new URL('../../../test/goldens/triton/typed.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, answers }, null, 1)}\n`);
