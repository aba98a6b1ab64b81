import * as z from 'zod';
import { about } from '../../schemas/fields.js';
import { errors, jsonAnswer } from '../web/described-answers.js';
import type { Responses } from '../web/route.js';

const entry = z.object({
  id: about(z.string(), 'The name to download it by, and to ask it by.'),
  object: z.literal('catalogue_entry'),
  state: about(
    z.enum(['loaded', 'stored', 'downloading', 'partial', 'absent']),
    'Whether it answers, lies in the folder, is coming, has come in part, or is on the hub alone.',
  ),
  bytes: about(z.int().nullable(), 'Bytes of its files; null: not known.'),
  done_bytes: about(z.int().nullable(), 'Bytes of them that are here; null: all, or none.'),
  bytes_per_second: about(z.int().nullable(), 'Bytes that come each second; null: nothing is coming.'),
  fits: about(
    z.boolean().nullable(),
    'Its weights and the cache of a conversation have room in the memory for models; null: not known yet.',
  ),
  cached_tokens: about(z.int().nullable(), 'Tokens for which its KV cache would have room.'),
  context_tokens: about(z.int().nullable(), 'Tokens of its longest sequence.'),
  tokens_per_second: about(z.number().nullable(), 'Tokens a second of one sequence, at most.'),
  problem: about(z.string().nullable(), 'Why its latest download failed, or it cannot be used.'),
});

export function catalogueResponses(): Responses {
  const list = z.object({
    object: z.literal('list'),
    data: z.array(entry),
    more: about(z.int(), 'Models that the list leaves out.'),
    memory_bytes: about(z.int(), 'Bytes of memory for models that are loaded on demand.'),
    read_bytes_per_second: about(
      z.int().nullable(),
      'Bytes that memory gives a second to the threads that compute; null: not measured yet.',
    ),
    hub: z.object({
      state: about(
        z.enum(['unknown', 'asking', 'reachable', 'unreachable', 'offline']),
        'Whether the hub answers; offline: the server may not ask it.',
      ),
      reason: about(z.string().nullable(), 'Why it does not.'),
    }),
    may_download: about(z.boolean(), 'The caller may begin and end downloads.'),
    download_refusal: about(z.string().nullable(), 'Why the caller may not.'),
  });
  return { 200: jsonAnswer('The models.', list), ...errors(401, 404) };
}

const model = z.string();

export function downloadResponses(): Responses {
  const begun = z.object({ object: z.literal('model_download'), model });
  return {
    202: jsonAnswer('The download is under way, or done.', begun),
    ...errors(400, 401, 403, 404, 413, 429, 500, 503),
  };
}

export function cancelResponses(): Responses {
  const ended = z.object({ object: z.literal('model_download.cancelled'), model });
  return { 200: jsonAnswer('The download is ended.', ended), ...errors(401, 403, 404) };
}
