import * as z from 'zod';
import type { Guide } from '../../../callbacks/guide.js';
import { checkGuideEnds, type GuidedOptions, guideOf, leftOutWarning } from '../../generation/guided.js';
import type { TextCodec } from '../../generation/text-model.js';
import { about, ignored } from '../../schemas/fields.js';
import { ApiError } from '../web/errors.js';
import type { Warn } from '../web/warnings.js';
import type { CommonRequest } from './schemas/common.js';

const json = z.union([z.string(), z.boolean(), z.record(z.string(), z.unknown())], {
  error: 'expected a JSON schema',
});
const choice = z.array(z.string().min(1)).min(1);

/** Schema of OpenAI's response_format, with structural_tag as in vLLM. */
export const responseFormat = z.discriminatedUnion('type', [
  about(z.object({ type: z.literal('text') }), 'Any text.'),
  about(
    z.object({
      type: z.literal('json_object'),
      schema: about(json.nullish(), "The JSON schema that the answer follows, as in llama.cpp's server."),
      value: about(
        json.nullish(),
        "Text Generation Inference's name of schema, which huggingface_hub sends.",
      ),
    }),
    'Any JSON object, or JSON that follows a schema.',
  ),
  about(
    z.object({
      type: z.literal('json_schema'),
      json_schema: about(
        z.object({
          name: about(z.string().nullish(), 'Accepted; it has no bearing on the answer.'),
          description: about(z.string().nullish(), 'Accepted; it has no bearing on the answer.'),
          schema: about(json.nullish(), 'The JSON schema that the answer follows.'),
          strict: about(
            z.boolean().nullish(),
            'true: a schema that cannot be followed as a whole is refused. Otherwise what cannot be followed is left out, which the header X-Skein-Warning says.',
          ),
        }),
        'The schema, and what it is called.',
      ),
    }),
    'JSON that follows a schema.',
  ),
  about(z.looseObject({ type: z.literal('structural_tag') }), "XGrammar's structural tags."),
]);

/** Fields of guides with vLLM's older and newer names. */
export const guideFields = {
  structured_outputs: about(
    z
      .object({
        json: about(json.nullish(), 'JSON that follows a schema.'),
        json_object: about(z.boolean().nullish(), 'true: any JSON object.'),
        regex: about(z.string().nullish(), 'A text that the regular expression matches.'),
        choice: about(choice.nullish(), 'One of these texts.'),
        grammar: about(z.string().nullish(), 'A text of this grammar, in EBNF.'),
        structural_tag: about(
          z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
          "XGrammar's structural tags.",
        ),
        whitespace_pattern: about(
          z.string().nullish(),
          'With JSON: regular expression of the white space between its tokens. Not given: a space at most, or a line break and an indent.',
        ),
        disable_any_whitespace: about(z.boolean().nullish(), 'With JSON: true allows no white space.'),
      })
      .nullish(),
    'What the answer has to look like: one of the forms.',
  ),
  guided_json: older(json.nullish(), 'json'),
  guided_regex: older(z.string().nullish(), 'regex'),
  guided_choice: older(choice.nullish(), 'choice'),
  guided_grammar: older(z.string().nullish(), 'grammar'),
  guided_json_object: older(z.boolean().nullish(), 'json_object'),
  guided_decoding_backend: ignored('Accepted; there is one backend.'),
  guided_whitespace_pattern: older(z.string().nullish(), 'whitespace_pattern'),
  grammar: about(z.string().nullish(), "llama.cpp's name of structured_outputs.grammar."),
  json_schema: about(json.nullish(), "llama.cpp's name of structured_outputs.json."),
};

function older<T extends z.ZodType>(schema: T, name: string): T {
  return about(schema, { description: `The older name of structured_outputs.${name}.`, deprecated: true });
}

type ResponseFormat = z.output<typeof responseFormat>;
type Request = CommonRequest & { response_format?: ResponseFormat | undefined };

/** Forms that a request asks for, each with its field's name. */
function askedForms(request: Request): [string, GuidedOptions][] {
  const asked: [string, GuidedOptions][] = [];
  const format = formatGuide(request.response_format);
  if (format !== null) asked.push(['response_format', format]);
  const outputs = request.structured_outputs;
  // White space alone is of the form that another field asks for.
  const { whitespace_pattern: _, disable_any_whitespace: __, ...form } = outputs ?? {};
  const isSpaceAlone = spaceOf(request) !== undefined && Object.values(form).every((value) => value == null);
  if (outputs && !isSpaceAlone) {
    asked.push([
      'structured_outputs',
      {
        json: outputs.json ?? (outputs.json_object || undefined),
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
  if (request.guided_json_object) asked.push(['guided_json_object', { json: true }]);
  // llama.cpp's clients send empty ones for "not given".
  if (request.grammar) asked.push(['grammar', { grammar: request.grammar }]);
  if (request.json_schema != null && request.json_schema !== '')
    asked.push(['json_schema', { json: request.json_schema }]);
  return asked;
}

/** Name of the field that gives the answer's form; undefined: none does. */
export function guideParamOf(request: Request): string | undefined {
  return askedForms(request)[0]?.[0];
}

/** Guide for the form that a request asks for; undefined: any form. `warn`: of what a schema without strict loses. @throws ApiError, InvalidRequestError. */
export async function guideOfRequest(
  request: Request,
  codec: TextCodec,
  warn: Warn,
): Promise<Guide | undefined> {
  const asked = askedForms(request);
  const [first, second] = asked;
  if (first === undefined) {
    if (spaceOf(request) === undefined) return undefined;
    throw new ApiError(
      400,
      "A pattern of white space needs a form of JSON, such as 'structured_outputs.json'.",
      {
        param: request.guided_whitespace_pattern == null ? 'structured_outputs' : 'guided_whitespace_pattern',
      },
    );
  }
  if (second !== undefined) {
    throw new ApiError(400, `'${first[0]}' and '${second[0]}' exclude each other: an answer has one form.`, {
      param: second[0],
    });
  }
  const [param, guided] = first;
  checkGuideEnds(request.ignore_eos ?? false, param);
  return guideOf({ ...guided, whitespacePattern: spaceOf(request) }, param, codec, (leftOut) =>
    warn(leftOutWarning(leftOut)),
  );
}

/** Pattern of the white space in JSON; undefined: none is given. @throws ApiError for one together with its opposite. */
function spaceOf({ structured_outputs: outputs, guided_whitespace_pattern: older }: Request) {
  const pattern = outputs?.whitespace_pattern ?? older ?? undefined;
  if (!outputs?.disable_any_whitespace) return pattern;
  if (pattern === undefined || pattern === '') return '';
  const param =
    outputs.whitespace_pattern == null
      ? 'guided_whitespace_pattern'
      : 'structured_outputs.whitespace_pattern';
  throw new ApiError(400, `'${param}' and 'structured_outputs.disable_any_whitespace' exclude each other.`, {
    param,
  });
}

function formatGuide(format: ResponseFormat | undefined): GuidedOptions | null {
  switch (format?.type) {
    case 'json_object': {
      const { schema, value } = format;
      if (schema != null && value != null) {
        const message = "'response_format.schema' and 'response_format.value' exclude each other.";
        throw new ApiError(400, message, { param: 'response_format.value' });
      }
      const followed = schema ?? value;
      return followed == null ? { json: true } : { json: followed, isLenient: true };
    }
    case 'json_schema':
      return { json: format.json_schema.schema ?? {}, isLenient: format.json_schema.strict !== true };
    case 'structural_tag':
      return { structuralTag: format };
    default:
      return null;
  }
}
