import * as z from 'zod';
import { MAX_INT32 } from '../../../base/int32.js';
import { PARAMETERS } from '../../../callbacks/request/parameters.js';
import { about, component, notSupported, number, optional, tokenList } from '../../schemas/fields.js';
import { withOtherFields } from '../../schemas/fields-node.js';
import { seed, stopFields } from '../answering/schemas/common.js';
import {
  OTHER_OLLAMA_CHAT_FIELDS,
  OTHER_OLLAMA_GENERATE_FIELDS,
  OTHER_OLLAMA_OPTIONS,
} from '../answering/schemas/other-fields.js';
import { functionName, limitTools } from '../answering/schemas/tools.js';
import { PARAMETER_OPTIONS } from './parameter-options.js';

const MAX_MESSAGES = 10_000;
const MAX_TOOLS = 512;
const MAX_INPUTS = 2048;
/** Longest name of a model. */
const MAX_NAME = 512;

const modelName = about(
  z.string().min(1).max(MAX_NAME),
  'A name that GET /api/tags lists; without a tag it has the tag latest.',
);

/** How long the model stays loaded: '5m', a number of seconds; 0: it is unloaded after the answer, -1: never. */
const keepAlive = optional(
  z.union([z.string().max(64), z.number()], { error: "expected a duration such as '5m', or seconds" }),
  "How long the model stays loaded after the request: a duration such as '5m' or '1h30m', or seconds; 0 unloads it after the answer, and a negative one keeps it. It has a bearing on models of --models-dir alone.",
);

const format = optional(
  z.union([z.literal(''), z.literal('json'), z.record(z.string(), z.unknown())], {
    error: "expected 'json' or a JSON schema",
  }),
  "What the answer has to look like: 'json', or a JSON schema.",
);

const think = optional(
  z.union([z.boolean(), z.string().max(32)], { error: "expected true, false or a level such as 'low'" }),
  'Whether a model that reasons does so, or how much. Not given: as its template has it.',
);

/** An option of how a model is loaded or computed, which has no bearing on what it answers here. */
const ofLoading = () => z.unknown().optional();

const options = about(
  optional(
    withOtherFields(
      z.object({
        ...PARAMETER_OPTIONS,
        seed: seed(PARAMETERS.seed.ollama.help),
        num_predict: optional(
          z.int().min(-2).max(MAX_INT32),
          'Most tokens of the answer; 0 or less: as it comes.',
        ),
        stop: stopFields.stop,
        tfs_z: notSupported('tail-free sampling', 1),
        penalize_newline: notSupported('penalties that leave out the line break', true),
        num_ctx: ofLoading(),
        num_keep: ofLoading(),
        num_batch: ofLoading(),
        num_gpu: ofLoading(),
        main_gpu: ofLoading(),
        num_thread: ofLoading(),
        numa: ofLoading(),
        low_vram: ofLoading(),
        f16_kv: ofLoading(),
        use_mmap: ofLoading(),
        use_mlock: ofLoading(),
        vocab_only: ofLoading(),
        logits_all: ofLoading(),
        embedding_only: ofLoading(),
      }),
      OTHER_OLLAMA_OPTIONS,
    ),
  ),
  'How tokens are chosen. Options of how a model is loaded (num_ctx, num_gpu, num_thread and the like) are accepted without effect: the server has options for these.',
);

const logProbFields = {
  logprobs: optional(z.boolean(), 'Log-probabilities of the tokens of the answer.'),
  top_logprobs: number({ min: 0, max: 20, integer: true }, 'Other tokens at each place.'),
};

const images = optional(
  z.array(z.string()).max(1000),
  'Pictures (JPEG, PNG, WebP or GIF) in base64, for a model that takes them.',
);

const stream = optional(z.boolean(), {
  description: 'Answers with a line of JSON for each part; false: with one object.',
  default: true,
});

/** Fields that chats and texts share. */
const textFields = {
  format,
  options,
  think,
  stream,
  shift: optional(
    z.boolean(),
    'Accepted without effect: an answer ends where the context does, and nothing is moved.',
  ),
  keep_alive: keepAlive,
  ...logProbFields,
};

const call = z.object({
  id: optional(z.string().max(256)),
  type: optional(z.string()),
  function: z.object({
    index: optional(z.int()),
    name: z.string(),
    arguments: optional(z.record(z.string(), z.unknown())),
  }),
});

const message = component(
  'OllamaMessage',
  z.object({
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    content: optional(z.string(), 'The text. Text that spells a special token stays text.'),
    thinking: optional(z.string(), 'What the model thought; reaches the chat template.'),
    images,
    tool_calls: optional(z.array(call).max(1000), 'Calls that the model made.'),
    tool_name: optional(z.string(), 'The function whose result this is.'),
    tool_call_id: optional(z.string(), 'The call whose result this is.'),
  }),
  'A message of the conversation.',
);

const tool = z.object({
  type: optional(
    z.literal('function', { error: "expected 'function' (no other kind of tool is supported)" }),
  ),
  function: z.object({
    name: functionName,
    description: optional(z.string()),
    parameters: optional(z.record(z.string(), z.unknown()), 'JSON schema of its arguments, an object.'),
  }),
});

export const chatSchema = component(
  'OllamaChatRequest',
  withOtherFields(
    z.object({
      model: modelName,
      messages: optional(
        z.array(message).max(MAX_MESSAGES),
        'The conversation so far; none: the model is loaded, and nothing answered.',
      ),
      tools: optional(
        z.array(tool).max(MAX_TOOLS).superRefine(limitTools),
        'Functions that the model may call.',
      ),
      truncate: optional(z.boolean(), {
        description:
          'Leaves out the oldest messages of a chat that is too long, but none of the system, and not the last; false: it is an error.',
        default: true,
      }),
      ...textFields,
    }),
    OTHER_OLLAMA_CHAT_FIELDS,
  ),
  "Fields of Ollama's /api/chat.",
);

export const generateSchema = component(
  'OllamaGenerateRequest',
  withOtherFields(
    z.object({
      model: modelName,
      prompt: optional(z.string(), 'The text; none: the model is loaded, and nothing answered.'),
      suffix: optional(z.string(), 'Text after the answer, for models that fill in between.'),
      system: optional(z.string(), 'The system message.'),
      template: optional(
        z.string().max(65_536),
        "A template in place of the model's own, of {{ .System }}, {{ .Prompt }} and {{ .Response }}, with if, else and end.",
      ),
      context: optional(tokenList(0, false), 'The context of the answer that this prompt follows on.'),
      raw: optional(z.boolean(), 'The prompt goes to the model as it is, without a template.'),
      truncate: optional(
        z.boolean(),
        'Accepted without effect: a prompt that is too long is an error, and never cut.',
      ),
      images,
      ...textFields,
    }),
    OTHER_OLLAMA_GENERATE_FIELDS,
  ),
  "Fields of Ollama's /api/generate.",
);

const ofEmbedding = {
  options: optional(z.looseObject({}), 'Accepted without effect.'),
  keep_alive: keepAlive,
};

export const embedSchema = component(
  'OllamaEmbedRequest',
  z.object({
    model: modelName,
    input: about(
      z
        .union([z.string(), z.array(z.string()).max(MAX_INPUTS)], {
          error: `expected a string, or a list of at most ${MAX_INPUTS}`,
        })
        .transform((value) => (typeof value === 'string' ? [value] : value)),
      `The texts: one, or up to ${MAX_INPUTS}.`,
    ),
    truncate: optional(z.boolean(), {
      description: 'Cuts a text that is too long at its end; false: it is an error.',
      default: true,
    }),
    dimensions: optional(
      z.int().min(1).max(MAX_INT32),
      'Values of each embedding, for models made to be cut.',
    ),
    ...ofEmbedding,
  }),
  "Fields of Ollama's /api/embed.",
);

export const embeddingsSchema = component(
  'OllamaEmbeddingsRequest',
  z.object({
    model: modelName,
    prompt: optional(z.string(), 'The text.'),
    ...ofEmbedding,
  }),
  "Fields of Ollama's older /api/embeddings.",
);

const nameFields = {
  model: optional(z.string().max(MAX_NAME), 'A name that GET /api/tags lists; empty: that of `name`.'),
  name: optional(z.string().max(MAX_NAME), { description: 'The older name of model.', deprecated: true }),
};

export const pullSchema = component(
  'OllamaPullRequest',
  z.object({
    model: optional(
      z.string().min(1).max(MAX_NAME),
      'A repository of the Hugging Face hub: ORG/NAME or ORG/NAME:QUANT, with hf.co/ in front or without.',
    ),
    name: nameFields.name,
    insecure: optional(z.boolean(), 'Accepted without effect.'),
    username: optional(z.string(), 'Accepted without effect: HF_TOKEN of the server is its leave.'),
    password: optional(z.string(), 'Accepted without effect.'),
    stream,
  }),
  "Fields of Ollama's /api/pull.",
);

export const deleteSchema = component(
  'OllamaDeleteRequest',
  z.object(nameFields),
  "Fields of Ollama's /api/delete.",
);

export const showSchema = component(
  'OllamaShowRequest',
  z.object({
    ...nameFields,
    verbose: optional(z.boolean(), 'Accepted without effect.'),
    system: optional(z.string(), 'Accepted without effect.'),
    template: optional(z.string(), 'Accepted without effect.'),
    options: optional(z.looseObject({}), 'Accepted without effect.'),
  }),
  "Fields of Ollama's /api/show.",
);

export type ChatBody = z.output<typeof chatSchema>;
export type GenerateBody = z.output<typeof generateSchema>;
export type EmbedBody = z.output<typeof embedSchema>;
export type EmbeddingsBody = z.output<typeof embeddingsSchema>;
export type PullBody = z.output<typeof pullSchema>;
export type NameBody = z.output<typeof deleteSchema>;
export type ShowBody = z.output<typeof showSchema>;
export type OllamaOptions = NonNullable<ChatBody['options']>;
export type OllamaMessage = NonNullable<ChatBody['messages']>[number];
