import * as z from 'zod';
import type { Guide } from '../../../engine/guided/guide.js';
import { checkGuideEnds, type GuidedOptions, guideOf } from '../../generation/guided.js';
import { ApiError } from './errors.js';
import type { ChatRequest, CommonRequest } from './schemas.js';

const json = z.union([z.string(), z.boolean(), z.record(z.string(), z.unknown())], {
  error: 'expected a JSON schema',
});
const choice = z.array(z.string().min(1)).min(1);

/** OpenAI's response_format, and structural_tag beside it as vLLM has it. */
export const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object') }),
  z.object({
    type: z.literal('json_schema'),
    json_schema: z.object({
      name: z.string().nullish(),
      description: z.string().nullish(),
      schema: json.nullish(),
      /** The schema is followed either way. */
      strict: z.boolean().nullish(),
    }),
  }),
  z.looseObject({ type: z.literal('structural_tag') }),
]);

/** Names of vLLM, in its older and its newer form. */
export const guideFields = {
  structured_outputs: z
    .strictObject({
      json: json.nullish(),
      json_object: z.boolean().nullish(),
      regex: z.string().nullish(),
      choice: choice.nullish(),
      grammar: z.string().nullish(),
      structural_tag: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
    })
    .nullish(),
  guided_json: json.nullish(),
  guided_regex: z.string().nullish(),
  guided_choice: choice.nullish(),
  guided_grammar: z.string().nullish(),
};

type Request = CommonRequest & Partial<Pick<ChatRequest, 'response_format'>>;

/** What the answer has to look like; undefined: anything. @throws ApiError, InvalidRequestError. */
export function guideOfRequest(request: Request): Guide | undefined {
  const asked: [string, GuidedOptions][] = [];
  const format = formatGuide(request.response_format);
  if (format !== null) asked.push(['response_format', format]);
  const outputs = request.structured_outputs;
  if (outputs) {
    asked.push([
      'structured_outputs',
      {
        json: outputs.json ?? outputs.json_object ?? undefined,
        regex: outputs.regex ?? undefined,
        choice: outputs.choice ?? undefined,
        grammar: outputs.grammar ?? undefined,
        structuralTag: outputs.structural_tag ?? undefined,
      },
    ]);
  }
  if (request.guided_json != null) asked.push(['guided_json', { json: request.guided_json }]);
  if (request.guided_regex != null) asked.push(['guided_regex', { regex: request.guided_regex }]);
  if (request.guided_choice != null) asked.push(['guided_choice', { choice: request.guided_choice }]);
  if (request.guided_grammar != null) asked.push(['guided_grammar', { grammar: request.guided_grammar }]);
  const [first, second] = asked;
  if (first === undefined) return undefined;
  if (second !== undefined) {
    throw new ApiError(400, `'${first[0]}' and '${second[0]}' exclude each other: an answer has one form.`, {
      param: second[0],
    });
  }
  const [param, guided] = first;
  checkGuideEnds(request.ignore_eos ?? false, param);
  return guideOf(guided, param);
}

function formatGuide(format: ChatRequest['response_format']): GuidedOptions | null {
  switch (format?.type) {
    case 'json_object':
      return { json: true };
    case 'json_schema':
      return { json: format.json_schema.schema ?? {} };
    case 'structural_tag':
      return { structuralTag: format };
    default:
      return null;
  }
}
