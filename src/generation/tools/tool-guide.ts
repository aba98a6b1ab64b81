import { CALL_BEGIN, CALL_END, CALL_SEPARATOR, CALLS_BEGIN, CALLS_END, FENCE } from './deepseek-parser.js';
import { type FollowedSchema, gemma4Arguments, keywordArguments, schemaFormat } from './followed-schema.js';
import { GEMMA4_BEGIN, GEMMA4_END, GEMMA4_HEAD } from './gemma4-parser.js';
import { QUOTE } from './gemma4-value.js';
import { either, sequence, type TagFormat, text } from './guide-format.js';
import { HERMES_BEGIN, HERMES_END } from './hermes-parser.js';
import { PYTHON_TAG } from './llama3-parser.js';
import { ARGS, CALL_ID, TOOL_CALLS } from './mistral-parser.js';
import { parameterTags } from './qwen3-coder-guide.js';
import { FUNCTION_BEGIN, FUNCTION_END } from './qwen3-coder-parser.js';
import type { FunctionTool, TextFormatName } from './types.js';

export interface CallGuideOptions {
  tools: readonly FunctionTool[];
  /** True where the answer may have at most one call. */
  isSingle: boolean;
  /** Special tokens of the vocabulary, which a guide does not take as text. */
  specialTexts: ReadonlySet<string>;
  /** The model's template, which distinguishes Mistral's forms. */
  templateSource: string | null;
  /** Schema of the arguments of a function's calls. */
  schemaOf: (tool: FunctionTool) => FollowedSchema;
}

/** Format of an answer that consists of calls, at least one. */
export function callsFormat(format: TextFormatName, options: CallGuideOptions): TagFormat {
  switch (format) {
    case 'hermes':
      return listOf(hermesTags(options), '\n', options);
    case 'qwen3_coder':
      return listOf(qwen3CoderTags(options), '\n', options);
    case 'llama3_json':
      return listOf(llama3Tags(options), '; ', options);
    case 'pythonic':
      return sequence(text('['), listOf(pythonicTags(options), ', ', options), text(']'));
    case 'deepseek_v3':
      return sequence(marker(CALLS_BEGIN, options), deepSeekCalls(options));
    case 'gemma4':
      return listOf(gemma4Tags(options), '', options);
    case 'mistral':
      if (hasNamedForm(options)) return listOf(mistralTags(options), '', options);
      return sequence(marker(TOOL_CALLS, options), mistralList(options));
  }
}

/** Format of any answer; calls in it have the right form. */
export function freeFormat(format: TextFormatName, options: CallGuideOptions): TagFormat {
  const { isSingle } = options;
  switch (format) {
    case 'hermes':
      return within(hermesTags(options), HERMES_BEGIN, isSingle);
    case 'qwen3_coder':
      return within(qwen3CoderTags(options), HERMES_BEGIN, isSingle);
    case 'mistral':
      if (hasNamedForm(options)) return within(mistralTags(options), TOOL_CALLS, isSingle);
      return withinOnce(TOOL_CALLS, mistralList(options), options);
    case 'deepseek_v3':
      return withinOnce(CALLS_BEGIN, deepSeekCalls(options), options);
    case 'gemma4':
      return within(gemma4Tags(options), GEMMA4_BEGIN, isSingle);
    case 'pythonic':
      return either(callsFormat(format, options), textNotFrom('['));
    case 'llama3_json': {
      const calls = callsFormat(format, options);
      return either(calls, sequence(marker(PYTHON_TAG, options), calls), textNotFrom('{'));
    }
  }
}

/** Format of text with one list of all calls in it. */
function withinOnce(begin: string, content: TagFormat, options: CallGuideOptions): TagFormat {
  return within([{ type: 'tag', begin: beginMarker(begin, options), content, end: '' }], begin, true);
}

function qwen3CoderTags(options: CallGuideOptions): TagFormat[] {
  return options.tools.map((tool) => {
    const head = text(`\n${FUNCTION_BEGIN}${tool.name}>\n`);
    const parameters = parameterTags(tool, options.schemaOf(tool));
    const end = [text(`${FUNCTION_END}\n`), marker(HERMES_END, options)];
    const begin = beginMarker(HERMES_BEGIN, options);
    return { type: 'tag', begin, content: sequence(head, parameters, ...end), end: '' };
  });
}

/** Format of the calls between the outer markers, with the last of these. */
function deepSeekCalls(options: CallGuideOptions): TagFormat {
  // V3.1 has neither the word nor the fence.
  const hasFence = options.templateSource?.includes(FENCE) ?? true;
  const tags = options.tools.map((tool) => {
    const separator = marker(CALL_SEPARATOR, options);
    const head = hasFence
      ? [text('function'), separator, text(`${tool.name}\n${FENCE}\n`)]
      : [text(tool.name), separator];
    const end = [...(hasFence ? [text('\n```')] : []), marker(CALL_END, options)];
    const content = sequence(...head, schema(tool, options), ...end);
    return { type: 'tag', begin: beginMarker(CALL_BEGIN, options), content, end: '' };
  });
  return sequence(listOf(tags, hasFence ? '\n' : '', options), marker(CALLS_END, options));
}

function hermesTags(options: CallGuideOptions): TagFormat[] {
  return options.tools.map((tool) => {
    const head = `\n{"name": ${JSON.stringify(tool.name)}, "arguments": `;
    const begin = beginMarker(HERMES_BEGIN, options);
    const end = [text('}\n'), marker(HERMES_END, options)];
    return { type: 'tag', begin, content: sequence(text(head), schema(tool, options), ...end), end: '' };
  });
}

function gemma4Tags(options: CallGuideOptions): TagFormat[] {
  const hasSpecialQuotes = options.specialTexts.has(QUOTE);
  return options.tools.map((tool) => {
    const head = text(`${GEMMA4_HEAD}${tool.name}`);
    const args = gemma4Arguments(options.schemaOf(tool), hasSpecialQuotes);
    const content = sequence(head, args, marker(GEMMA4_END, options));
    return { type: 'tag', begin: beginMarker(GEMMA4_BEGIN, options), content, end: '' };
  });
}

function llama3Tags(options: CallGuideOptions): TagFormat[] {
  return options.tools.map((tool) => ({
    type: 'tag',
    begin: `{"name": ${JSON.stringify(tool.name)}, "parameters": `,
    content: schema(tool, options),
    end: '}',
  }));
}

function pythonicTags(options: CallGuideOptions): TagFormat[] {
  return options.tools.map((tool) => ({
    type: 'tag',
    begin: `${tool.name}(`,
    content: keywordArguments(options.schemaOf(tool)),
    end: ')',
  }));
}

function mistralList(options: CallGuideOptions): TagFormat {
  const tags = options.tools.map((tool) => ({
    type: 'tag',
    begin: `{"name": ${JSON.stringify(tool.name)}, "arguments": `,
    content: schema(tool, options),
    end: '}',
  }));
  return sequence({ type: 'regex', pattern: ' ?\\[' }, listOf(tags, ', ', options), text(']'));
}

function mistralTags(options: CallGuideOptions): TagFormat[] {
  const hasIds = options.templateSource?.includes(CALL_ID) ?? false;
  const id = hasIds ? [marker(CALL_ID, options), { type: 'regex', pattern: '[a-zA-Z0-9]{9}' }] : [];
  return options.tools.map((tool) => ({
    type: 'tag',
    begin: beginMarker(TOOL_CALLS, options),
    content: sequence(text(tool.name), ...id, marker(ARGS, options), schema(tool, options)),
    end: '',
  }));
}

function hasNamedForm({ templateSource }: CallGuideOptions): boolean {
  return templateSource?.includes(ARGS) ?? false;
}

function schema(tool: FunctionTool, { schemaOf }: CallGuideOptions): TagFormat {
  return schemaFormat(schemaOf(tool));
}

export function marker(value: string, { specialTexts }: Pick<CallGuideOptions, 'specialTexts'>): TagFormat {
  return specialTexts.has(value) ? { type: 'token', token: value } : text(value);
}

function beginMarker(value: string, options: CallGuideOptions): string | TagFormat {
  return options.specialTexts.has(value) ? marker(value, options) : value;
}

function listOf(tags: readonly TagFormat[], separator: string, { isSingle }: CallGuideOptions): TagFormat {
  return { type: 'tags_with_separator', tags, separator, at_least_one: true, stop_after_first: isSingle };
}

function within(tags: readonly TagFormat[], trigger: string, isSingle: boolean): TagFormat {
  const triggers = tags.some(({ begin }) => typeof begin === 'string') ? [trigger] : [];
  return { type: 'triggered_tags', tags, triggers, stop_after_first: isSingle };
}

/** Format of text that begins no call. */
function textNotFrom(bracket: '[' | '{'): TagFormat {
  return { type: 'regex', pattern: `\\s*([^\\s\\${bracket}][\\s\\S]*)?` };
}
