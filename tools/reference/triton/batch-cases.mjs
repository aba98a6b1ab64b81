// Series of requests that show how batches are formed and counted, for a Triton and for this server alike. A model answers each row of X with
// the number of requests in its execution and the number of that execution. A request of 0 keeps its instance until a file is there, so that
// what comes meanwhile waits; one of a negative number fails.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ones = (...values) => values.map((value) => ({ rows: [value] }));

/** Of each model: its batching in config.pbtxt, and the requests that follow the one that keeps the instance. */
export const SERIES = {
  one_by_one: { batching: '', requests: ones(1, 2, 3) },
  whatever_waits: {
    batching: 'dynamic_batching { }',
    requests: [...ones(1, 2, 3, 4, 5), { rows: [6, 6] }, ...ones(7, 8, 9)],
  },
  too_many_rows: {
    batching: 'dynamic_batching { }',
    requests: [{ rows: [1, 1, 1, 1, 1] }, { rows: [2, 2, 2, 2] }, ...ones(3)],
  },
  preferred: {
    batching: 'dynamic_batching { preferred_batch_size: [ 2, 4 ] }',
    requests: ones(1, 2, 3, 4, 5, 6, 7),
  },
  delayed: {
    batching: 'dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 3000000 }',
    requests: ones(1, 2, 3, 4, 5, 6),
  },
  levels: {
    batching: 'dynamic_batching { preferred_batch_size: [ 2 ] priority_levels: 3 default_priority_level: 2 }',
    requests: [
      ...ones(1, 2),
      { rows: [3], priority: 3 },
      { rows: [4], priority: 1 },
      { rows: [5], priority: 2 },
      { rows: [6], priority: 1 },
    ],
  },
  full: {
    batching: 'dynamic_batching { default_queue_policy { max_queue_size: 2 } }',
    requests: ones(1, 2, 3, 4),
  },
  expired: {
    batching: 'dynamic_batching { default_queue_policy { default_timeout_microseconds: 2000000 } }',
    requests: ones(1, 2),
    waitMs: 3000,
  },
  failing: { batching: 'dynamic_batching { }', requests: ones(1, -2, 3) },
};

/** config.pbtxt of a model, but for its backend. */
export const configOf = (name) =>
  `max_batch_size: 8
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 2 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
${SERIES[name].batching}
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
  const { requests, waitMs = 0 } = SERIES[name];
  const { started, gate } = filesOf(directory, name);
  const answers = [ask(url, name, { rows: [0] })];
  await until(() => existsSync(started));
  let refused = 0;
  for (const [i, request] of requests.entries()) {
    const answer = ask(url, name, request);
    answers.push(answer);
    let isOver = false;
    void answer.then(() => {
      isOver = true;
    });
    await until(async () => isOver || (await waiting(name)) === i + 1 - refused);
    if (isOver) refused++;
  }
  await sleep(waitMs);
  writeFileSync(gate, '');
  const told = await Promise.all(answers);
  return { model: name, answers: told, statistics: await countsOf(url, name) };
}

async function ask(url, name, { rows, priority }) {
  const body = {
    inputs: [{ name: 'X', datatype: 'INT32', shape: [rows.length, 1], data: rows }],
    ...(priority === undefined ? {} : { parameters: { priority } }),
  };
  const response = await fetch(`${url}/v2/models/${name}/infer`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  return response.status === 200 ? answer.outputs[0].data : { status: response.status, error: answer.error };
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
