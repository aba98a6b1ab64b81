// Requests to a server of the Open Inference Protocol, good and bad, in the order in which they are made: what is loaded changes on the way.
// record.mjs asks them of a Triton, test/src/server/kserve/triton-goldens.test.ts of this server.

/** Inputs that the model add_sub takes. */
const ok = (extra = {}) => ({
  inputs: [
    { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(16).fill(2) },
    { name: 'INPUT1', shape: [1, 16], datatype: 'INT32', data: Array(16).fill(1) },
  ],
  ...extra,
});
const M = '/v2/models/add_sub';

/** [method, path, body, headers] of each; a body that is no text is sent as JSON. */
export const cases = [
  ['GET', '/v2'],
  ['GET', '/v2/health/live'],
  ['GET', '/v2/health/ready'],
  ['GET', M],
  ['GET', `${M}/ready`],
  ['GET', `${M}/versions/1`],
  ['GET', `${M}/versions/1/ready`],
  ['GET', `${M}/versions/2`],
  ['GET', `${M}/versions/2/ready`],
  ['GET', `${M}/versions/x`],
  ['GET', '/v2/models/nope'],
  ['GET', '/v2/models/nope/ready'],
  ['GET', '/v2/models/nope/config'],
  ['GET', '/v2/models/nope/stats'],
  ['POST', M],
  ['GET', `${M}/infer`],
  ['GET', '/v2/nope'],
  ['GET', '/nope'],
  ['POST', '/v2/health/live'],
  ['POST', '/v2'],
  ['POST', `${M}/infer`, ok()],
  ['POST', `${M}/infer`, ok({ id: 'abc' })],
  ['POST', `${M}/infer`, ok({ outputs: [{ name: 'OUTPUT1' }] })],
  ['POST', `${M}/infer`, ok({ outputs: [{ name: 'NOPE' }] })],
  ['POST', `${M}/infer`, ok({ outputs: [] })],
  ['POST', `${M}/infer`, ok({ outputs: [{ name: 'OUTPUT0', parameters: { classification: 2 } }] })],
  ['POST', `${M}/infer`, ok({ outputs: [{ name: 'OUTPUT0', parameters: { classification: 0 } }] })],
  ['POST', `${M}/infer`, ok({ outputs: [{ name: 'OUTPUT0', parameters: { binary_data: true } }] })],
  ['POST', `${M}/infer`, ok({ parameters: { binary_data_output: true } })],
  ['POST', `${M}/versions/1/infer`, ok()],
  ['POST', `${M}/versions/7/infer`, ok()],
  ['POST', '/v2/models/nope/infer', ok()],
  ['POST', `${M}/infer`, '{"inputs":'],
  ['POST', `${M}/infer`, ''],
  ['POST', `${M}/infer`, []],
  ['POST', `${M}/infer`, {}],
  ['POST', `${M}/infer`, { inputs: [] }],
  ['POST', `${M}/infer`, { inputs: 5 }],
  [
    'POST',
    `${M}/infer`,
    { inputs: [{ name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(16).fill(2) }] },
  ],
  ['POST', `${M}/infer`, { inputs: [{ shape: [1, 16], datatype: 'INT32', data: Array(16).fill(2) }] }],
  ['POST', `${M}/infer`, { inputs: [{ name: 'INPUT0', datatype: 'INT32', data: Array(16).fill(2) }] }],
  ['POST', `${M}/infer`, { inputs: [{ name: 'INPUT0', shape: [1, 16], data: Array(16).fill(2) }] }],
  ['POST', `${M}/infer`, { inputs: [{ name: 'INPUT0', shape: [1, 16], datatype: 'INT32' }] }],
  ['POST', `${M}/infer`, { inputs: [{ name: 'INPUT0', shape: [1, 16], datatype: 'FP9', data: [1] }] }],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [{ name: 'INPUT0', shape: [1, 16], datatype: 'FP32', data: Array(16).fill(2) }, ok().inputs[1]],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 15], datatype: 'INT32', data: Array(15).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    { inputs: [{ name: 'INPUT0', shape: [16], datatype: 'INT32', data: Array(16).fill(2) }, ok().inputs[1]] },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(15).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(17).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [9, 16], datatype: 'INT32', data: Array(144).fill(2) },
        { name: 'INPUT1', shape: [9, 16], datatype: 'INT32', data: Array(144).fill(1) },
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [2, 16], datatype: 'INT32', data: Array(32).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [0, 16], datatype: 'INT32', data: [] },
        { name: 'INPUT1', shape: [0, 16], datatype: 'INT32', data: [] },
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [-1, 16], datatype: 'INT32', data: Array(16).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1.5, 16], datatype: 'INT32', data: Array(16).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: ['1', 16], datatype: 'INT32', data: Array(16).fill(2) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(16).fill('a') },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(16).fill(1.5) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', data: Array(16).fill(3e9) },
        ok().inputs[1],
      ],
    },
  ],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        {
          name: 'INPUT0',
          shape: [1, 16],
          datatype: 'INT32',
          data: [
            [1, 2, 3, 4, 5, 6, 7, 8],
            [1, 2, 3, 4, 5, 6, 7, 8],
          ],
        },
        ok().inputs[1],
      ],
    },
  ],
  ['POST', `${M}/infer`, { inputs: [...ok().inputs, ok().inputs[0]] }],
  ['POST', `${M}/infer`, { inputs: [...ok().inputs, { ...ok().inputs[0], name: 'INPUT2' }] }],
  ['POST', `${M}/infer`, ok({ id: 5 })],
  ['POST', `${M}/infer`, ok({ parameters: 5 })],
  ['POST', `${M}/infer`, ok({ parameters: { sequence_id: 5, sequence_start: true } })],
  ['POST', `${M}/infer`, ok({ parameters: { priority: 1, timeout: 100 } })],
  ['POST', `${M}/infer`, ok({ parameters: { priority: -1 } })],
  ['POST', `${M}/infer`, ok({ parameters: { custom: 'x', n: 1, b: true, f: 1.5 } })],
  ['POST', `${M}/infer`, ok({ parameters: { custom: [1] } })],
  [
    'POST',
    `${M}/infer`,
    {
      inputs: [
        { name: 'INPUT0', shape: [1, 16], datatype: 'INT32', parameters: { binary_data_size: 64 } },
        ok().inputs[1],
      ],
    },
  ],
  ['POST', `${M}/infer`, ok(), { 'Inference-Header-Content-Length': '5' }],
  ['POST', `${M}/infer`, ok(), { 'Inference-Header-Content-Length': '99999' }],
  ['POST', `${M}/infer`, ok(), { 'Inference-Header-Content-Length': '-1' }],
  ['POST', `${M}/infer`, ok(), { 'Inference-Header-Content-Length': 'x' }],
  ['GET', `${M}/config`],
  ['GET', `${M}/stats`],
  ['GET', '/v2/models/stats'],
  ['GET', '/v2/trace/setting'],
  ['GET', `${M}/trace/setting`],
  ['GET', '/v2/logging'],
  ['POST', '/v2/logging', { log_verbose_level: 0 }],
  ['POST', '/v2/logging', { nope: 0 }],
  ['POST', '/v2/trace/setting', { trace_rate: '10' }],
  ['POST', '/v2/repository/index'],
  ['POST', '/v2/repository/index', { ready: true }],
  ['GET', '/v2/repository/index'],
  ['POST', '/v2/repository/models/nope/load'],
  ['POST', '/v2/repository/models/nope/unload'],
  ['POST', '/v2/repository/models/add_sub/unload'],
  ['GET', `${M}/ready`],
  ['GET', M],
  ['POST', `${M}/infer`, ok()],
  ['POST', '/v2/repository/index'],
  ['POST', '/v2/repository/models/add_sub/load'],
  ['POST', '/v2/repository/models/add_sub/load', { parameters: { config: '{"max_batch_size":"x"}' } }],
  ['POST', '/v2/repository/models/add_sub/load', { parameters: { config: 5 } }],
  ['POST', '/v2/repository/models/add_sub/load', { parameters: { nope: 5 } }],
  [
    'POST',
    '/v2/models/identity/infer',
    { inputs: [{ name: 'INPUT0', shape: [1, 3], datatype: 'FP32', data: [1, 'NaN', 3] }] },
  ],
  [
    'POST',
    '/v2/models/identity/infer',
    { inputs: [{ name: 'INPUT0', shape: [1, 3], datatype: 'FP32', data: [1e39, -1e39, 3] }] },
  ],
  [
    'POST',
    '/v2/models/identity/infer',
    { inputs: [{ name: 'INPUT0', shape: [1, 4294967296, 4294967296], datatype: 'FP32', data: [1] }] },
  ],
];
