// The protocol's part of the API's description, imported when it is asked for.
import type { RouteConfig } from '@hono/zod-openapi';
import * as z from 'zod';
import { about, component } from '../../schemas/fields.js';
import type { Route } from '../web/route.js';

const DATATYPES = [
  'BOOL',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'FP16',
  'BF16',
  'FP32',
  'FP64',
  'BYTES',
] as const;

const datatype = about(
  z.enum(DATATYPES),
  'The type of the elements. FP16 and BF16 come as binary data alone.',
);
const shape = about(
  z.array(z.int().nonnegative()),
  'Sizes; the batch comes first where the model takes batches.',
);
const data = about(
  z.array(z.unknown()).optional(),
  'Elements in row-major order, flat or nested; absent where they are binary data.',
);
const parameters = (text: string) => about(z.looseObject({}).nullish(), text);

const inferRequest = component(
  'InferRequest',
  z.object({
    id: about(z.string().optional(), 'A name for the request, which comes back with the answer.'),
    inputs: about(
      z.array(
        z.object({
          name: about(z.string(), 'An input of the model.'),
          shape,
          datatype,
          data,
          parameters: parameters(
            'binary_data_size: bytes of this tensor after the JSON; shared_memory_region, shared_memory_byte_size and shared_memory_offset: where it lies in shared memory.',
          ),
        }),
      ),
      'Every input of the model, but for optional ones.',
    ),
    outputs: about(
      z
        .array(
          z.object({
            name: about(z.string(), 'An output of the model.'),
            parameters: parameters(
              'binary_data: as raw bytes; classification: this number of the largest of each row; shared_memory_region, shared_memory_byte_size and shared_memory_offset: where it goes.',
            ),
          }),
        )
        .optional(),
      'The outputs that are wanted; not given: all.',
    ),
    parameters: parameters(
      'binary_data_output: all outputs as raw bytes; priority, 1 is the highest; timeout in microseconds; others go to the model.',
    ),
  }),
  'A request for tensors.',
);
const inferAnswer = component(
  'InferResponse',
  z.object({
    id: z.string().optional(),
    model_name: z.string(),
    model_version: z.string(),
    parameters: z.looseObject({}).optional(),
    outputs: z.array(
      z.object({ name: z.string(), datatype, shape, data, parameters: z.looseObject({}).optional() }),
    ),
  }),
  'Tensors of an answer.',
);
const protocolError = component(
  'InferError',
  z.object({ error: about(z.string(), 'What is wrong, in one sentence.') }),
  'An error of the Open Inference Protocol.',
);

const loadRequest = component(
  'LoadRequest',
  z.strictObject({
    parameters: about(
      z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).nullish(),
      'config: a configuration as JSON; file:PATH: a file in base64 (--allow-model-upload); share; other values.',
    ),
  }),
  'What a model is loaded with.',
);
const unloadRequest = component(
  'UnloadRequest',
  z.strictObject({
    parameters: z
      .strictObject({
        unload_dependents: about(z.boolean().nullish(), 'true unloads what depends on it, too.'),
      })
      .nullish(),
  }),
  'How a model is unloaded.',
);
const indexRequest = component(
  'IndexRequest',
  z.strictObject({ ready: about(z.boolean().nullish(), 'Only those that answer.') }),
  'What is to be listed.',
);
const key = about(z.string(), 'The name of the object below /dev/shm, such as /my-input.');
const offset = about(z.int().nonnegative(), 'Bytes of the object before the region.');
const byteSize = about(z.int().positive(), 'Bytes of the region.');
const registration = component(
  'RegionRegistration',
  z.object({ key, offset: offset.default(0), byte_size: byteSize }),
  'A part of an object of shared memory.',
);
const regions = z.array(z.object({ name: z.string(), key, offset, byte_size: byteSize }));

const generateRequest = component(
  'GenerateRequest',
  z.looseObject({
    id: about(
      z.string().optional(),
      'A name for the request, which comes back with the answer, and by which `stop` finds it.',
    ),
    text_input: about(z.string().optional(), 'The prompt, of a model that generates text.'),
    max_tokens: about(
      z.int().optional(),
      'Most tokens of the answer, of a model that generates text; not given: 16.',
    ),
    stream: about(z.boolean().optional(), 'The answer comes in pieces: for generate_stream alone.'),
    stop: about(z.boolean().optional(), 'Ends the requests of the same id, and is no request of its own.'),
    parameters: parameters('More fields, which may stand next to the others just as well.'),
  }),
  "Inputs of the model by their names, a number, a text or a list each; other fields are the request's parameters.",
);
const generateAnswer = component(
  'GenerateResponse',
  z.looseObject({
    id: z.string().optional(),
    model_name: z.string(),
    model_version: z.string(),
    text_output: about(
      z.union([z.string(), z.array(z.string())]).optional(),
      'The text, of a model that generates some; a list where there are several.',
    ),
  }),
  'Outputs of the model by their names.',
);

interface About {
  summary: string;
  body?: z.ZodType;
  examples?: Record<string, { value: unknown }>;
  answer?: z.ZodType;
  /** The answer is a stream of events. */
  isStream?: true;
  /** The connection becomes a WebSocket. */
  isSocket?: true;
}

const anything = z.looseObject({});
const rows = z.array(
  z.object({
    name: z.string(),
    version: z.string().optional(),
    state: z.string().optional(),
    reason: z.string().optional(),
  }),
);
const GREETING = { text_input: 'Hello', max_tokens: 16 };
const ONE = { inputs: [{ name: 'X', shape: [1, 3], datatype: 'FP32', data: [1, 2, 3] }] };

/** The description of a route, by its method and its path without the version of a model. */
const ROUTES_TOLD: Readonly<Record<string, About>> = {
  'get /v2': { summary: 'Reports the name, the version and the extensions of the server', answer: anything },
  'get /v2/health/live': {
    summary: 'Reports that the process runs',
    answer: z.object({ live: z.literal(true) }),
  },
  'get /v2/health/ready': {
    summary: 'Reports whether the server should be given work',
    answer: z.object({ ready: z.literal(true) }),
  },
  'get /v2/models/stats': { summary: 'Reports counts and times of all models', answer: anything },
  'get /v2/models/{model}': { summary: 'Describes the inputs and outputs of a model', answer: anything },
  'get /v2/models/{model}/ready': {
    summary: 'Reports whether a model answers',
    answer: z.object({ name: z.string(), ready: z.literal(true) }),
  },
  'get /v2/models/{model}/config': { summary: 'Returns the configuration of a model', answer: anything },
  'get /v2/models/{model}/stats': { summary: 'Reports counts and times of a model', answer: anything },
  'post /v2/models/{model}/infer': {
    summary: 'Has a model answer tensors',
    body: inferRequest,
    examples: { 'Three numbers': { value: ONE } },
    answer: inferAnswer,
  },
  'get /v2/models/{model}/infer': {
    summary: 'Opens a WebSocket for requests to a model: the messages are those of POST',
    isSocket: true,
  },
  'get /models/infer': {
    summary: "Opens a WebSocket for requests to any model: each names it as 'model'",
    isSocket: true,
  },
  'post /v2/models/{model}/generate': {
    summary: 'Has a model answer fields, with one response',
    body: generateRequest,
    examples: { 'A text': { value: GREETING } },
    answer: generateAnswer,
  },
  'post /v2/models/{model}/generate_stream': {
    summary: 'Has a model answer fields, with any number of responses as events',
    body: generateRequest,
    examples: { 'A text in pieces': { value: { ...GREETING, stream: true } } },
    answer: generateAnswer,
    isStream: true,
  },
  'get /v2/models/{model}/trace/setting': {
    summary: 'Returns the settings of tracing of a model',
    answer: anything,
  },
  'post /v2/models/{model}/trace/setting': {
    summary: 'Refuses other settings of tracing of a model',
    answer: anything,
  },
  'get /v2/trace/setting': { summary: 'Returns the settings of tracing', answer: anything },
  'post /v2/trace/setting': { summary: 'Refuses other settings of tracing', answer: anything },
  'get /v2/logging': { summary: 'Returns the settings of the log', answer: anything },
  'post /v2/logging': { summary: 'Refuses other settings of the log', answer: anything },
  'post /v2/repository/index': {
    summary: 'Lists models and versions with their state',
    body: indexRequest,
    answer: rows,
  },
  'post /v2/repository/models/{model}/load': {
    summary: 'Loads a model, or loads it again',
    body: loadRequest,
    answer: anything,
  },
  'post /v2/repository/models/{model}/unload': { summary: 'Unloads a model', body: unloadRequest },
  'get /v2/systemsharedmemory/status': {
    summary: 'Lists the regions of shared memory that clients have registered',
    answer: regions,
  },
  'get /v2/systemsharedmemory/region/{region}/status': {
    summary: 'Describes a region of shared memory',
    answer: regions,
  },
  'post /v2/systemsharedmemory/region/{region}/register': {
    summary: 'Registers a part of an object in /dev/shm, where --allow-shared-memory gives leave',
    body: registration,
  },
  'post /v2/systemsharedmemory/unregister': { summary: 'Forgets all regions of shared memory' },
  'post /v2/systemsharedmemory/region/{region}/unregister': { summary: 'Forgets a region of shared memory' },
  'get /v2/cudasharedmemory/status': {
    summary: 'Lists regions of shared memory of GPUs: there are none',
    answer: z.array(anything),
  },
  'get /v2/cudasharedmemory/region/{region}/status': {
    summary: 'Describes a region of shared memory of GPUs: there are none',
  },
  'post /v2/cudasharedmemory/region/{region}/register': {
    summary: 'Refuses a region of shared memory of GPUs',
  },
  'post /v2/cudasharedmemory/unregister': { summary: 'Forgets all regions of shared memory of GPUs' },
  'post /v2/cudasharedmemory/region/{region}/unregister': {
    summary: 'Forgets a region of shared memory of GPUs',
  },
};

const WORDS: Readonly<Record<number, string>> = {
  400: 'The request is wrong, or the model is not ready.',
  401: 'The API key is missing or wrong.',
  403: 'The API key may not do this, or the Host or the web page that asks is not allowed.',
  404: 'There is no such model or version.',
  408: 'The body did not come in time.',
  413: 'The body is too long.',
  426: 'The request asks for no WebSocket.',
  429: 'Requests hold all the memory there is for them.',
  500: 'The model failed.',
  501: 'This is not supported.',
  503: 'The queue is full, the time in it is over, the model is being loaded, or the server is shutting down.',
};

/** A model may still be loaded. */
const asksForModel = (path: string) =>
  /^\/v2\/models\/\{model\}(\/versions\/\{version\})?(\/config)?$/.test(path);

/** The description of a route of the protocol for createRoute of @hono/zod-openapi. */
export function describeRoute({ method, path }: Pick<Route, 'method' | 'path'>): RouteConfig {
  const told = ROUTES_TOLD[`${method} ${path.replace('/versions/{version}', '')}`]!;
  const names = Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1]!);
  const params = z.object(Object.fromEntries(names.map((name) => [name, about(z.string(), `The ${name}.`)])));
  const type = told.isStream ? 'text/event-stream' : 'application/json';
  const content = told.answer && { [type]: { schema: told.answer } };
  const isOpen = path.startsWith('/v2/health/');
  const statuses = [
    ...(path === '/v2/health/live' ? [] : [400, 404]),
    ...(isOpen ? [403] : [401, 403]),
    ...(told.isSocket ? [426, 429, 503] : []),
    ...(method === 'post' ? [408, 413, 429, 500, 501, 503] : asksForModel(path) ? [503] : []),
  ];
  const refusals = statuses.map((status) => [
    status,
    { description: WORDS[status], content: { 'application/json': { schema: protocolError } } },
  ]);
  return {
    method,
    path,
    tags: ['Inference'],
    operationId: [
      method,
      ...path.split(/\W+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1)),
    ].join(''),
    summary: `${told.summary}${path.includes('{version}') ? ', by its version' : ''}`,
    request: {
      ...(names.length > 0 && { params }),
      ...(told.body && {
        body: {
          content: {
            'application/json': { schema: told.body, ...(told.examples && { examples: told.examples }) },
          },
        },
      }),
    },
    responses: {
      ...(told.isSocket
        ? { 101: { description: 'The connection is a WebSocket now.' } }
        : { 200: { description: 'Done.', ...(content && { content }) } }),
      ...Object.fromEntries(refusals),
    },
  } as RouteConfig;
}
