import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  askAll,
  CASES,
  COUNTED,
  ENSEMBLES,
  type KINDS,
  MODELS,
  REFUSED,
} from '../../../../tools/reference/triton/ensemble-cases.mjs';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

interface Answer {
  request: string;
  status: number;
  type: string | null;
  body: string;
}
interface Asked {
  answers: Answer[];
  statistics: object[];
}

const golden = JSON.parse(
  readFileSync(new URL('../../../goldens/triton/ensembles.json', import.meta.url), 'utf8'),
) as Asked;

const outputs = (fields: string) =>
  `(all) => all.map(({ inputs: { X, W } }) => ({ outputs: { ${fields} } }))`;
const mapped = (name: string, of: string) => `${name}: { data: X.data.map(${of}), shape: X.shape }`;
/** The models of write-ensemble-models.mjs in JavaScript. */
const CODE: Readonly<Record<keyof typeof KINDS, string>> = {
  add: outputs(mapped('Y', '(x) => x + 1')),
  sum: outputs(mapped('Y', '(x, i) => x + (W?.data[i] ?? 0)')),
  pair: outputs(`${mapped('Y', '(x) => x + 1')}, ${mapped('Z', '(x) => x - 1')}`),
  partly: outputs(mapped('Y', '(x) => x + 1')),
  echo: outputs('Y: X'),
  failing: "(all) => all.map(() => ({ error: 'it was asked to fail' }))",
  repeat: `async function* ([{ inputs: { X } }]) {
    for (let i = 0; i < X.data[0] % 9; i++) yield [{ outputs: { ${mapped('Y', '(x) => x + 1 + i')} } }];
    if (X.data[0] > 9) yield [{ error: 'it was asked to fail' }];
  }`,
};

const folder = temporaryFolder('skein-ensemble-goldens');
let server: SkeinProcess;
let ours: Asked;

function write(name: string, config: string, code?: string): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  writeFileSync(join(folder, name, 'config.pbtxt'), config);
  if (code !== undefined) writeFileSync(join(folder, name, '1/model.mjs'), code);
}

beforeAll(async () => {
  for (const [name, [kind, config]] of Object.entries(MODELS)) {
    const code = `export const execute = ${CODE[kind as keyof typeof KINDS]};`;
    write(name, `backend: "module"\n${config}`, code);
  }
  for (const [name, config] of Object.entries({ ...ENSEMBLES, ...REFUSED })) write(name, config);
  const loaded = [...Object.keys(MODELS), ...Object.keys(ENSEMBLES)].flatMap((name) => [
    '--load-model',
    name,
  ]);
  server = await startServer(['--model-repository', folder, '--model-control-mode', 'explicit', ...loaded]);
  ours = (await askAll(server.url)) as Asked;
});
afterAll(() => server?.stop());

/** Where this server answers otherwise, by the number of the request, and why. */
const DIFFERENCES: Readonly<Record<number, string>> = {
  2: 'readiness has the body of the protocol',
  3: 'fields of GPUs and of other formats are not told',
  7: 'the refusal tells the outputs that there are',
  12: 'the refusal has the id of the request, as others have it',
  16: 'outputs come in the order of the configuration, and parameters once',
  19: 'parameters come once',
  23: 'a step whose outputs nobody wants does not run',
  24: "another backend: a module's answer has all outputs that are asked for",
  25: "another backend: a module's answer has all outputs that are asked for",
  26: "another backend: a module's answer has all outputs that are asked for",
  32: 'the member that failed is named',
  33: 'the model is named, and its policy is nothing that is not supported',
  59: 'of two fields of one name the last one counts, as in JSON everywhere',
  65: 'a failure of the model is no mistake of the client, and the member is named',
  66: "another backend: a module's answer has all outputs that are asked for",
  73: 'what cannot be answered has no status 200',
  75: 'what cannot be answered has no status 200',
  77: 'what cannot be answered has no status 200',
  81: 'an error that comes first has a status, and the member is named',
  84: 'an error that comes first has a status, and the member is named',
  108: 'the step is named by its model',
  109: 'the step is named by its model',
};
/** Of these the status is another, too. */
const OTHER_STATUS = [23, 24, 25, 26, 33, 59, 65, 66, 73, 75, 77, 81, 84];

/** What both are to say alike: reasons are worded by each, and so are the bodies of loads that went well. */
function comparable({ request, status, type, body }: Answer): object {
  if (request.includes('/repository/index')) {
    const rows = JSON.parse(body) as { name: string; version?: string; state?: string }[];
    const versions = rows.filter(({ version }) => version !== undefined);
    return { status, rows: versions.map(({ name, version, state }) => [name, version, state]) };
  }
  if (!request.includes('/repository/')) return { status, body, ...(status === 200 && { type }) };
  const told = /^(?:load failed for model '\w+': |failed to load '\w+', )(.*?)\s*$/s;
  return { status, error: status === 200 ? null : told.exec(JSON.parse(body).error)![1] };
}

describe('ensembles, and the generate extension, as a Triton has them', () => {
  it('in as many answers', () => {
    expect(golden.answers).toHaveLength(CASES.length);
    expect(ours.answers.map(({ request }) => request)).toEqual(golden.answers.map(({ request }) => request));
  });

  it.each(golden.answers.map(({ request }, i) => [i, request.slice(0, 120)] as const))('%i %s', (i) => {
    const [theirs, our] = [golden.answers[i]!, ours.answers[i]!];
    if (theirs.status === 500 && i !== 32) {
      // What is wrong with a request, or a configuration, is its author's fault; Triton calls it its own, and says less of it.
      expect(our.status).toBe(400);
      expect(JSON.parse(our.body)).toEqual({ error: expect.stringMatching(/\S/) });
      return;
    }
    if (!(i in DIFFERENCES)) {
      expect(comparable(our)).toEqual(comparable(theirs));
      return;
    }
    expect(comparable(our), DIFFERENCES[i]).not.toEqual(comparable(theirs));
    expect(our.status !== theirs.status).toBe(OTHER_STATUS.includes(i));
  });

  it('in what is counted of models that took part in nothing that differs', () => {
    const same = ['fork', 'optional', 'nested'];
    const of = ({ statistics }: Asked) => statistics.filter((_, i) => same.includes(COUNTED[i]!));
    expect(of(ours)).toHaveLength(same.length);
    expect(of(ours)).toEqual(of(golden));
  });
});
