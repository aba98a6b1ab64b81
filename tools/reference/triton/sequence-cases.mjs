// Series of requests that show how sequences are brought to slots, batched and ended, for a Triton and for
// this server alike. A model answers each request with what it receives about its row. A request of 0 keeps
// its instance until a file is there, so that what comes meanwhile waits; one of a negative number fails.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** `1+` begins sequence 1, `1-` ends it, `1+-` does both; `1` continues. */
const ask = (text, { value = 1, ...more } = {}) => ({
  ask: { id: Number.parseInt(text, 10), start: text.includes('+'), end: text.includes('-'), value, ...more },
});
/** Asks, and waits for the answer before the next step. */
const done = (text, more) => [ask(text, more), { settle: true }];
/** A request that keeps the instance. */
const hold = (text) => [ask(text, { value: 0 }), { held: true }];
/** Requests that wait while the instance is kept, each after the one before it. */
const queued = (...texts) =>
  texts.flatMap((one, i) => [typeof one === 'string' ? ask(one) : one, { waiting: i + 1 }]);
/** Two requests, of which the first waits for the second. */
const pair = (one, other) => [ask(one), { waiting: 1 }, ask(other), { settle: true }];
const open = [{ open: true }, { settle: true }];

const CONTROLS = ['START', 'END', 'READY']
  .map(
    (name) => `{ name: "${name}" control [ { kind: CONTROL_SEQUENCE_${name} int32_false_true: [ 0, 1 ] } ] }`,
  )
  .join(', ');
const id = (type) =>
  `{ name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_${type} } ] }`;
const controls = (type = 'UINT64') => `control_input [ ${CONTROLS}, ${id(type)} ]`;
const PATIENT = 'max_sequence_idle_microseconds: 60000000';

/** Of each model: its batching in config.pbtxt, rows of a batch, and the steps of its series. */
export const SERIES = {
  one_by_one: {
    batching: `${PATIENT} ${controls()}`,
    steps: ['1+', '1', '1-', '1', '2+-', '2'].flatMap((one) => done(one)),
  },
  default_idle: {
    batching: controls(),
    steps: [...done('1+'), { sleepMs: 1600 }, ...done('1'), ...done('1+-')],
  },
  // The figure of the strategy direct in Triton's architecture: START and READY over time.
  timeline: {
    batching: `${PATIENT} direct { } ${controls()}`,
    rows: 2,
    steps: [...done('1+'), ...hold('1'), ...queued('1', '2+', '1-', '2', '2-'), ...open],
  },
  slots: {
    batching: `${PATIENT} direct { } ${controls()}`,
    steps: ['1+', '2+', '3+', '3', '2-', '3', '4+', '1-', '3', '3-', '4-'].flatMap((one) => done(one)),
  },
  backlog: {
    batching: `${PATIENT} direct { } ${controls()}`,
    rows: 2,
    steps: [...hold('1+'), ...queued('2+', '3+', '4+', '3-', '1-', '4', '2', '2-', '4-'), ...open],
  },
  same_id: {
    batching: `${PATIENT} direct { } ${controls()}`,
    rows: 2,
    steps: [...hold('1+'), ...queued('1', '2+', '1+', '1-', '1+', '2-', '1-'), ...open],
  },
  longer_below: {
    batching: `${PATIENT} direct { } ${controls()}`,
    steps: [...hold('9+'), ...queued('1+', '2+', '2-', '1', '1-', '9-'), ...open],
  },
  ragged: {
    batching: `${PATIENT} direct { } ${controls()}`,
    steps: [
      ...hold('1+'),
      ...queued(
        ask('2+', { length: 2 }),
        ask('3+'),
        ask('2-', { length: 2 }),
        ask('1-'),
        ask('3-', { length: 3 }),
      ),
      ...open,
    ],
  },
  expired: {
    batching: `${PATIENT} direct { } ${controls()}`,
    rows: 1,
    steps: [
      ...hold('1+'),
      ...queued('1-', ask('2+', { timeout: 60_000_000 }), ask('2', { timeout: 50_000 })),
      { sleepMs: 400 },
      ask('2-'),
      { answered: true },
      ...open,
    ],
  },
  idle: {
    batching: `max_sequence_idle_microseconds: 3000000 direct { } ${controls()}`,
    rows: 1,
    steps: [...done('1+'), ask('2+'), { waiting: 1 }, ask('2-'), { settle: true }, ...done('1')],
  },
  utilization: {
    batching: `${PATIENT} direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 60000000 } ${controls()}`,
    rows: 2,
    steps: [...pair('1+', '2+'), ...pair('2-', '1'), ...pair('1', '3+-'), ...pair('4+-', '1-')],
  },
  delayed: {
    batching: `${PATIENT} direct { minimum_slot_utilization: 1 max_queue_delay_microseconds: 200000 } ${controls()}`,
    rows: 2,
    steps: ['1+', '1', '1-'].flatMap((one) => done(one)),
  },
  oldest: {
    batching: `${PATIENT} oldest { max_candidate_sequences: 3 preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 60000000 } ${controls()}`,
    steps: [
      ...pair('1+', '2+'),
      ...pair('2', '3+'),
      ...pair('1-', '3'),
      ...pair('4+', '3-'),
      ...pair('2-', '4-'),
    ],
  },
  oldest_delayed: {
    batching: `${PATIENT} oldest { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 200000 } ${controls()}`,
    steps: ['1+', '1', '1-'].flatMap((one) => done(one)),
  },
  no_batches: {
    batching: `${PATIENT} ${controls()}`,
    rows: 0,
    steps: ['1+', '1', '1-', '1'].flatMap((one) => done(one)),
  },
  failing: {
    batching: `${PATIENT} direct { } ${controls()}`,
    steps: [
      ...done('1+'),
      ...done('1', { value: -1 }),
      ...done('1'),
      ...done('1-', { value: -1 }),
      ...done('1'),
    ],
  },
  refused: {
    batching: `${PATIENT} ${controls()}`,
    steps: [
      ...done('0+'),
      ...done('1', { noId: true }),
      ...done('1+', { noId: true, rows: 2 }),
      ...done('1+', { rows: 2 }),
      ...done('5'),
      ...done('6-'),
      ...done('1+', { text: 'x'.repeat(129) }),
    ],
  },
  ids_int64: {
    batching: `${PATIENT} ${controls('INT64')}`,
    steps: ['1+-', '2147483648+-', '9007199254740991+-'].flatMap((one) => done(one)),
  },
  ids_uint32: {
    batching: `${PATIENT} ${controls('UINT32')}`,
    steps: ['1+-', '4294967295+-', '4294967297+-'].flatMap((one) => done(one)),
  },
  ids_int32: {
    batching: `${PATIENT} ${controls('INT32')}`,
    steps: ['1+-', '2147483648+-', '4294967297+-'].flatMap((one) => done(one)),
  },
  ids_text: {
    batching: `${PATIENT} ${controls('STRING')}`,
    steps: [
      ...done('0+', { text: 'a sequence' }),
      ...done('0', { text: 'a sequence' }),
      ...done('0', { text: 'another' }),
      ...done('0-', { text: 'a sequence' }),
      ...done('0+-', { text: 'x'.repeat(128) }),
    ],
  },
};

/** config.pbtxt of a model, but for its backend. */
export const configOf = (name) =>
  `max_batch_size: ${SERIES[name].rows ?? 4}
input [ { name: "X" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_INT64 dims: [ 6 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
sequence_batching { ${SERIES[name].batching} }
`;

/** Files by which a model says that it is kept, and by which it is let go. */
export const filesOf = (directory, name) => ({
  started: join(directory, `${name}.started`),
  gate: join(directory, `${name}.gate`),
});

/**
 * Sends the series of a model.
 * @param url of the server @param waiting asks how many requests of a model wait @param directory of the models' files
 * @returns answers in the order of the requests, and counts of the statistics, which take no account of time
 */
export async function play(name, { url, waiting, directory }) {
  const { started, gate } = filesOf(directory, name);
  const answers = [];
  let isAnswered = false;
  const add = (answer) => {
    answers.push(answer);
    isAnswered = false;
    void answer.then(() => {
      if (answers.at(-1) === answer) isAnswered = true;
    });
  };
  for (const step of SERIES[name].steps) {
    if (step.ask !== undefined) add(answerTo(url, name, step.ask));
    else if (step.settle) await Promise.all(answers);
    else if (step.answered) await answers.at(-1);
    else if (step.held) await until(() => existsSync(started));
    else if (step.waiting !== undefined)
      await until(async () => isAnswered || (await waiting(name)) === step.waiting);
    else if (step.sleepMs !== undefined) await sleep(step.sleepMs);
    else if (step.open) writeFileSync(gate, '');
  }
  const told = await Promise.all(answers);
  return { model: name, answers: told, statistics: await countsOf(url, name) };
}

async function answerTo(
  url,
  name,
  { id: number, text, noId, start, end, value, length = 1, rows = 1, timeout },
) {
  const isBatched = SERIES[name].rows !== 0;
  const parameters = {
    ...(noId ? {} : { sequence_id: text ?? number }),
    sequence_start: start,
    sequence_end: end,
    ...(timeout === undefined ? {} : { timeout }),
  };
  const shape = isBatched ? [rows, length] : [length];
  const body = {
    inputs: [{ name: 'X', datatype: 'INT32', shape, data: Array(rows * length).fill(value) }],
    parameters,
  };
  const response = await fetch(`${url}/v2/models/${name}/infer`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.status === 200) return answer.outputs[0].data;
  return { status: response.status, error: answer.error.split('\n')[0] };
}

async function until(isSo) {
  while (!(await isSo())) await sleep(5);
}

async function countsOf(url, name) {
  const { model_stats: all } = await (await fetch(`${url}/v2/models/${name}/stats`)).json();
  const [{ inference_count, execution_count, inference_stats, batch_stats }] = all;
  const counts = (durations) =>
    Object.fromEntries(Object.entries(durations).map(([key, { count }]) => [key, count]));
  const batches = batch_stats.map(({ batch_size, ...durations }) => ({ batch_size, ...counts(durations) }));
  return { inference_count, execution_count, inference_stats: counts(inference_stats), batch_stats: batches };
}
