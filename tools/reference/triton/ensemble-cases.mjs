// Models, ensembles of them and requests, for a Triton and for this server alike: what is answered, what is refused at the load, what becomes of
// an ensemble when a member goes and comes, and what is counted.
import { setTimeout as sleep } from 'node:timers/promises';

const tensor = (name, dims = 1, type = 'INT32', more = '') =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ]${more} }`;
const io = (inputs, outputs, batch = 8) =>
  `max_batch_size: ${batch}\ninput [ ${inputs.join(', ')} ]\noutput [ ${outputs.join(', ')} ]\n`;
const XY = io([tensor('X')], [tensor('Y')]);
const DECOUPLED = 'model_transaction_policy { decoupled: true }\n';

/** What computes, by kind: Y of X. */
export const KINDS = {
  add: 'Y = X + 1',
  sum: 'Y = X + W, and X alone where W is missing',
  pair: 'Y = X + 1 and Z = X - 1',
  partly: 'Y = X + 1, and no Z',
  echo: 'Y = X, as it is',
  failing: 'an error',
  repeat: 'X + 1, X + 2, ..., as many as X says; an error after them where X is above 9',
};

/** Models with their kind, and their config.pbtxt but for its backend. */
export const MODELS = {
  add: ['add', XY],
  sum: ['sum', io([tensor('X'), tensor('W', 1, 'INT32', ' optional: true')], [tensor('Y')])],
  pair: ['pair', io([tensor('X')], [tensor('Y'), tensor('Z')])],
  partly: ['partly', io([tensor('X')], [tensor('Y'), tensor('Z')])],
  few_rows: ['add', io([tensor('X')], [tensor('Y')], 2)],
  plain: ['add', io([tensor('X')], [tensor('Y')], 0)],
  rows: ['add', io([tensor('X', '-1, 1')], [tensor('Y', '-1, 1')], 0)],
  floats: ['echo', io([tensor('X', 1, 'FP32')], [tensor('Y', 1, 'FP32')])],
  pairs_of: ['echo', io([tensor('X', 2)], [tensor('Y', 2)])],
  any_size: ['echo', io([tensor('X', -1)], [tensor('Y', -1)])],
  failing: ['failing', XY],
  repeat: ['repeat', XY + DECOUPLED],
  repeat_too: ['repeat', XY + DECOUPLED],
  words: ['echo', io([tensor('X', 1, 'STRING')], [tensor('Y', 1, 'STRING')])],
};

/** `model X=A W=B -> Y=C`: a step with tensors of the ensemble; `model@3` names a version. */
function step(text) {
  const [left, right = ''] = text.split('->').map((side) => side.trim());
  const [model, ...inputs] = left.split(' ');
  const [name, version = '-1'] = model.split('@');
  const map = (kind, pairs) =>
    pairs
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('='))
      .map(([key, value]) => `${kind} { key: "${key}" value: "${value}" }`)
      .join(' ');
  const named = name === '' ? '' : `model_name: "${name}" `;
  return `{ ${named}model_version: ${version} ${map('input_map', inputs)} ${map('output_map', right.split(' '))} }`;
}

const ensemble = (inputs, outputs, steps, { batch = 8, more = '' } = {}) =>
  `platform: "ensemble"\n${io(inputs, outputs, batch)}${more}ensemble_scheduling { step [ ${steps.map(step).join(', ')} ] }\n`;
const AB = [[tensor('A')], [tensor('B')]];

/** Ensembles that are well. */
export const ENSEMBLES = {
  chain: ensemble(...AB, ['add X=A -> Y=T', 'add X=T -> Y=B']),
  fork: ensemble(
    [tensor('A')],
    [tensor('B'), tensor('C')],
    ['add X=A -> Y=T', 'add X=T -> Y=B', 'pair X=T -> Y=U Z=V', 'sum X=U W=V -> Y=C'],
  ),
  optional: ensemble(
    [tensor('A'), tensor('D', 1, 'INT32', ' optional: true')],
    [tensor('B')],
    ['sum X=A W=D -> Y=B'],
  ),
  not_optional: ensemble(
    [tensor('A'), tensor('D', 1, 'INT32', ' optional: true')],
    [tensor('B'), tensor('C')],
    ['add X=A -> Y=B', 'add X=D -> Y=C'],
  ),
  partial: ensemble([tensor('A')], [tensor('B'), tensor('C')], ['partly X=A -> Y=B Z=C']),
  partial_then: ensemble(...AB, ['partly X=A -> Y=T Z=U', 'sum X=T W=U -> Y=B']),
  nested: ensemble(...AB, ['chain A=A -> B=T', 'add X=T -> Y=B']),
  mixed: ensemble(...AB, ['add X=A -> Y=T', 'plain X=T -> Y=U', 'add X=U -> Y=B']),
  mixed_rows: ensemble(...AB, ['add X=A -> Y=T', 'rows X=T -> Y=B']),
  plain_outside: ensemble(...AB, ['add X=A -> Y=B'], { batch: 0 }),
  breaks: ensemble(...AB, ['add X=A -> Y=T', 'failing X=T -> Y=B']),
  many: ensemble(...AB, ['repeat X=A -> Y=T', 'add X=T -> Y=B']),
  sized: ensemble([tensor('A', -1)], [tensor('B', -1)], ['any_size X=A -> Y=T', 'pairs_of X=T -> Y=B']),
  shaped: ensemble(
    [tensor('A', '1, 1', 'INT32', ' reshape { shape: [ 1 ] }')],
    [tensor('B')],
    ['add X=A -> Y=B'],
  ),
  talk: ensemble([tensor('A', 1, 'STRING')], [tensor('B', 1, 'STRING')], ['words X=A -> Y=B']),
};

/** Ensembles that cannot be loaded. */
export const REFUSED = {
  no_steps: `platform: "ensemble"\n${io(...AB)}ensemble_scheduling { step [ ] }\n`,
  no_scheduling: `platform: "ensemble"\n${io(...AB)}`,
  no_name: ensemble(...AB, [' X=A -> Y=B']),
  no_inputs: ensemble(...AB, ['add -> Y=B']),
  no_outputs: ensemble(...AB, ['add X=A -> Y=B', 'add X=A ->']),
  input_unused: ensemble([tensor('A'), tensor('D')], [tensor('B')], ['add X=A -> Y=B']),
  output_unused: ensemble([tensor('A')], [tensor('B'), tensor('D')], ['add X=A -> Y=B']),
  not_made: ensemble(...AB, ['sum X=A W=T -> Y=B']),
  circle: ensemble(...AB, ['sum X=A W=U -> Y=T', 'pair X=T -> Y=U Z=B']),
  twice: ensemble(...AB, ['add X=A -> Y=B', 'pair X=A -> Y=B Z=T']),
  in_vain: ensemble(...AB, ['pair X=A -> Y=B Z=T']),
  unknown_model: ensemble(...AB, ['nobody X=A -> Y=B']),
  unknown_version: ensemble(...AB, ['add@7 X=A -> Y=B']),
  unknown_input: ensemble(...AB, ['add V=A -> Y=B']),
  unknown_output: ensemble(...AB, ['add X=A -> V=B']),
  input_not_mapped: ensemble(...AB, ['sum W=A -> Y=B']),
  other_type: ensemble(...AB, ['floats X=A -> Y=B']),
  other_shape: ensemble(...AB, ['pairs_of X=A -> Y=B']),
  other_between: ensemble(...AB, ['add X=A -> Y=T', 'pairs_of X=T -> Y=U', 'any_size X=U -> Y=B']),
  fewer_rows: ensemble(...AB, ['few_rows X=A -> Y=B']),
  two_origins: ensemble(...AB, ['repeat X=A -> Y=T', 'repeat_too X=A -> Y=U', 'sum X=T W=U -> Y=B']),
  input_again: ensemble(...AB, ['repeat X=A -> Y=T', 'sum X=T W=A -> Y=B']),
  answered_apart: ensemble(
    [tensor('A')],
    [tensor('B'), tensor('C')],
    ['repeat X=A -> Y=B', 'add X=A -> Y=C'],
  ),
  itself: ensemble(...AB, ['itself A=A -> B=B']),
  instances: ensemble(...AB, ['add X=A -> Y=B'], {
    more: 'instance_group [ { count: 1 kind: KIND_CPU } ]\n',
  }),
  optimized: ensemble(...AB, ['add X=A -> Y=B'], { more: 'optimization { priority: PRIORITY_MAX }\n' }),
  warm: ensemble(...AB, ['add X=A -> Y=B'], {
    more: 'model_warmup [ { name: "w" batch_size: 1 inputs { key: "A" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } } ]\n',
  }),
  batched: ensemble(...AB, ['add X=A -> Y=B'], { more: 'dynamic_batching { }\n' }),
  other_platform: ensemble(...AB, ['add X=A -> Y=B']).replace(
    'platform: "ensemble"',
    'platform: "onnxruntime_onnx"',
  ),
};

const LOAD = '/v2/repository/models';
const rows = (name, values, shape = [values.length, 1], datatype = 'INT32') => ({
  name,
  shape,
  datatype,
  data: values,
});
const infer = (model, inputs, more = {}) => ['POST', `/v2/models/${model}/infer`, { inputs, ...more }];
const generate = (model, body) => ['POST', `/v2/models/${model}/generate`, body];
const stream = (model, body) => ['POST', `/v2/models/${model}/generate_stream`, body];
const load = (model) => ['POST', `${LOAD}/${model}/load`, {}];
const unload = (model, parameters) => ['POST', `${LOAD}/${model}/unload`, parameters && { parameters }];
const INDEX = ['POST', '/v2/repository/index', {}];

/** Requests in their order; the models and ensembles that are well are loaded. */
export const CASES = [
  ['GET', '/v2/models/chain'],
  ['GET', '/v2/models/many'],
  ['GET', '/v2/models/chain/ready'],
  ['GET', '/v2/models/chain/config'],
  infer('chain', [rows('A', [1])]),
  infer('chain', [rows('A', [1, 2, 3])], { id: 'q' }),
  infer('chain', [rows('A', [1])], { outputs: [{ name: 'B', parameters: { classification: 1 } }] }),
  infer('chain', [rows('A', [1])], { outputs: [{ name: 'T' }] }),
  infer('chain', [rows('A', [1])], { parameters: { sequence_id: 5, sequence_start: true } }),
  infer('chain', [rows('A', [1])], { parameters: { sequence_id: 'five', sequence_end: true } }),
  infer('chain', [rows('A', [1])], { parameters: { custom: 'x', priority: 1, timeout: 1000000 } }),
  infer('chain', []),
  infer('chain', [rows('T', [1])]),
  infer('chain', [rows('A', [1, 2], [1, 2])]),
  infer('chain', [rows('A', Array(9).fill(1))]),
  infer('chain', [rows('A', [1.5], [1, 1], 'FP32')]),
  infer('fork', [rows('A', [1])]),
  infer('fork', [rows('A', [1])], { outputs: [{ name: 'B' }] }),
  infer('fork', [rows('A', [1])], { outputs: [{ name: 'C' }] }),
  infer('fork', [rows('A', [1])], { outputs: [{ name: 'C' }, { name: 'B' }] }),
  infer('optional', [rows('A', [1]), rows('D', [10])]),
  infer('optional', [rows('A', [1])]),
  infer('not_optional', [rows('A', [1])]),
  infer('not_optional', [rows('A', [1])], { outputs: [{ name: 'B' }] }),
  infer('partial', [rows('A', [1])]),
  infer('partial', [rows('A', [1])], { outputs: [{ name: 'C' }] }),
  infer('partial_then', [rows('A', [1])]),
  infer('nested', [rows('A', [1])]),
  infer('mixed', [rows('A', [1])]),
  infer('mixed', [rows('A', [1, 2])]),
  infer('mixed_rows', [rows('A', [1, 2])]),
  infer('plain_outside', [rows('A', [1], [1])]),
  infer('breaks', [rows('A', [1])]),
  infer('many', [rows('A', [2])]),
  infer('sized', [rows('A', [1, 2], [1, 2])]),
  infer('sized', [rows('A', [1, 2, 3], [1, 3])]),
  infer('shaped', [rows('A', [1], [1, 1, 1])]),
  infer('talk', [rows('A', ['hi'], [1, 1], 'BYTES')]),
  generate('chain', { A: 1 }),
  generate('chain', { A: [1], id: 'q' }),
  generate('chain', { A: 1, id: '' }),
  generate('chain', { parameters: { A: 1 } }),
  generate('chain', { A: [1, 2] }),
  generate('chain', { A: [] }),
  generate('chain', { A: 'x' }),
  generate('chain', { A: 1.5 }),
  generate('chain', { A: { b: 1 } }),
  generate('chain', { A: [[1]] }),
  generate('chain', { A: 1, custom: 'x', other: 2.5, flag: true }),
  generate('chain', { A: 1, custom: { deep: 1 } }),
  generate('chain', { A: 1, custom: [1] }),
  generate('chain', { A: 1, custom: null }),
  generate('chain', { A: 1, parameters: 1 }),
  generate('chain', { A: 1, parameters: { nested: { twice: 1 } } }),
  generate('chain', { A: 1, id: 7 }),
  generate('chain', {}),
  generate('chain', ''),
  generate('chain', '[1]'),
  generate('chain', '{'),
  generate('chain', '{"A": 1, "A": 2}'),
  generate('nobody', { A: 1 }),
  ['POST', '/v2/models/chain/versions/1/generate', { A: 1 }],
  ['POST', '/v2/models/chain/versions/2/generate', { A: 1 }],
  ['GET', '/v2/models/chain/generate'],
  generate('fork', { A: 1 }),
  generate('breaks', { A: 1 }),
  generate('partial', { A: 1 }),
  generate('talk', { A: 'héllo' }),
  generate('talk', { A: ['a', 'b'] }),
  generate('talk', { A: 1 }),
  generate('add', { X: 1 }),
  generate('any_size', { X: [1, 2, 3] }),
  generate('any_size', { X: [] }),
  generate('many', { A: 0 }),
  generate('many', { A: 1 }),
  generate('many', { A: 3 }),
  generate('repeat', { X: 1 }),
  generate('repeat', { X: 3 }),
  stream('chain', { A: 1, id: 's' }),
  stream('many', { A: 3 }),
  stream('many', { A: 0 }),
  stream('many', { A: 10 }),
  stream('repeat', { X: 3, id: 's' }),
  stream('repeat', { X: 10 }),
  stream('breaks', { A: 1 }),
  stream('chain', { A: 'x' }),
  stream('chain', {}),
  stream('talk', { A: 'a\nb' }),
  ...Object.keys(REFUSED).map(load),
  // A member goes, and with it what needs it; they come back with it.
  unload('add'),
  INDEX,
  infer('chain', [rows('A', [1])]),
  infer('nested', [rows('A', [1])]),
  load('nested'),
  INDEX,
  infer('nested', [rows('A', [1])]),
  // An ensemble is loaded with its members; it takes along those that were not named.
  ...[...Object.keys(ENSEMBLES), ...Object.keys(MODELS)].map((name) => unload(name)),
  INDEX,
  load('nested'),
  INDEX,
  unload('nested', { unload_dependents: true }),
  INDEX,
  load('chain'),
  load('add'),
  unload('chain', { unload_dependents: true }),
  INDEX,
];

/** Models whose counts are compared in the middle, before anything is unloaded. */
export const COUNTED = ['chain', 'fork', 'optional', 'breaks', 'many', 'nested', 'add', 'sum', 'failing'];

/**
 * Asks everything. @param url of the server
 * @returns answers in the order of the cases, and counts of the statistics, which take no account of time
 */
export async function askAll(url) {
  const answers = [];
  let statistics = null;
  for (const [method, path, body] of CASES) {
    if (statistics === null && path.startsWith(LOAD)) statistics = await countsOf(url);
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(url + path, { method, body: method === 'GET' ? undefined : sent });
    answers.push({
      request: `${method} ${path}${sent === undefined ? '' : ` ${sent.slice(0, 200)}`}`,
      status: response.status,
      type: response.headers.get('content-type'),
      body: await response.text(),
    });
    if (path.startsWith(LOAD)) await settled(url);
  }
  return { answers, statistics };
}

/** Unloading continues after its answer. */
async function settled(url) {
  for (;;) {
    const index = await (await fetch(`${url}/v2/repository/index`, { method: 'POST', body: '{}' })).json();
    if (index.every(({ state }) => state !== 'UNLOADING' && state !== 'LOADING')) return;
    await sleep(20);
  }
}

async function countsOf(url) {
  const counts = [];
  for (const name of COUNTED) {
    const [stats] = (await (await fetch(`${url}/v2/models/${name}/stats`)).json()).model_stats;
    const of = (durations) =>
      Object.fromEntries(
        Object.entries(durations).map(([key, value]) => [
          key,
          typeof value === 'object' ? value.count : value,
        ]),
      );
    counts.push({
      name,
      inference_count: stats.inference_count,
      execution_count: stats.execution_count,
      inference_stats: of(stats.inference_stats),
      batch_stats: stats.batch_stats.map(of),
    });
  }
  return counts;
}
