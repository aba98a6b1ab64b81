// Requests that show what a response cache takes for the same request, and what is counted, for a Triton and for this server alike. A model
// answers each row of X with the row and the number of the execution, and in Z the row's double: an answer with an old number was not computed.

/** Models with what their config.pbtxt says of the cache. */
export const CACHE_MODELS = { cached: 'response_cache { enable: true }', plain: '' };

/** config.pbtxt of a model, but for its backend. */
export const cacheConfigOf = (name) =>
  `max_batch_size: 8
input [ { name: "X" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "Z" data_type: TYPE_INT32 dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
${CACHE_MODELS[name]}
`;

/** Requests, one after the other. What each differs in from the first one is its name. */
export const CACHE_REQUESTS = [
  { name: 'first', rows: [[1, 2]] },
  { name: 'same', rows: [[1, 2]] },
  { name: 'other id', rows: [[1, 2]], id: 'other' },
  { name: 'other priority and timeout', rows: [[1, 2]], parameters: { priority: 1, timeout: 1_000_000 } },
  { name: 'as binary data', rows: [[1, 2]], isBinary: true },
  { name: 'a parameter', rows: [[1, 2]], parameters: { style: 'bold' } },
  { name: 'one output', rows: [[1, 2]], outputs: ['Z'] },
  { name: 'other shape', rows: [[1], [2]] },
  { name: 'other data', rows: [[3, 4]] },
  { name: 'fails', rows: [[-1, 2]] },
  { name: 'fails again', rows: [[-1, 2]] },
  { name: 'same again', rows: [[1, 2]] },
];

/** Asks all requests of a model, and what it has counted. @param {string} url @param {string} name @param {string} metrics URL */
export async function playCache(url, name, metrics) {
  const answers = [];
  for (const request of CACHE_REQUESTS)
    answers.push({ name: request.name, ...(await answerOf(url, name, request)) });
  const {
    model_stats: [statistics],
  } = await (await fetch(`${url}/v2/models/${name}/stats`)).json();
  const { inference_count, execution_count, inference_stats } = statistics;
  const counts = Object.fromEntries(Object.entries(inference_stats).map(([key, { count }]) => [key, count]));
  return {
    model: name,
    answers,
    statistics: { inference_count, execution_count, ...counts },
    metrics: await countersOf(metrics, name),
  };
}

async function answerOf(url, model, { rows, id, parameters, outputs, isBinary }) {
  const shape = [rows.length, rows[0].length];
  const data = Int32Array.from(rows.flat());
  const input = { name: 'X', shape, datatype: 'INT32' };
  const json = JSON.stringify({
    ...(id && { id }),
    ...(parameters && { parameters }),
    inputs: [
      isBinary
        ? { ...input, parameters: { binary_data_size: data.byteLength } }
        : { ...input, data: [...data] },
    ],
    ...(outputs && { outputs: outputs.map((name) => ({ name })) }),
  });
  const body = isBinary ? Buffer.concat([Buffer.from(json), Buffer.from(data.buffer)]) : json;
  const headers = isBinary ? { 'Inference-Header-Content-Length': String(json.length) } : {};
  const answer = await (
    await fetch(`${url}/v2/models/${model}/infer`, { method: 'POST', headers, body })
  ).json();
  if (answer.error !== undefined) return { failed: true };
  return {
    outputs: answer.outputs.map(({ name, shape: sizes, data: values }) => [name, sizes, values]).sort(),
  };
}

/** Counters of a model that count something other than time. */
async function countersOf(url, model) {
  const found = {};
  for (const line of (await (await fetch(url)).text()).split('\n')) {
    const [, name, labels, value] = /^(nv_\w+)\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (name === undefined || !labels.includes(`model="${model}"`)) continue;
    const isTime = /duration/.test(name);
    if (/cache/.test(name) || /success|nv_inference_(count|exec_count)/.test(name))
      found[name] = isTime ? Number(value) > 0 : Number(value);
  }
  return Object.fromEntries(Object.entries(found).sort());
}
