import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { option, says } from '../../base/named-text.js';
import { ChatTemplateError } from '../chat-message.js';

/** Chat templates of a model by their names. */
export type NamedTemplates = Readonly<Record<string, string>>;

export interface ModelTemplates {
  /** The template called default; null: there is none. */
  chatTemplate: string | null;
  /** Templates of other names. Absent: there are none. */
  namedTemplates?: NamedTemplates;
}

/** Name of the usual template, and of the one for conversations with functions. */
const DEFAULT = 'default';
const TOOL_USE = 'tool_use';
/** The option that chooses one, which a program and the command line call by names of their own. */
const OPTION = option('chatTemplate');
/** Folder of templates next to chat_template.jinja, a file NAME.jinja each. */
export const ADDITIONAL_FOLDER = 'additional_chat_templates';

/** Where a model's templates may stand. Absent or null: there is no such file or entry. */
export interface TemplateSources {
  /** chat_template.jinja */
  file?: string | null | undefined;
  /** Files of ADDITIONAL_FOLDER, by their names without .jinja. */
  additional?: NamedTemplates | undefined;
  /** chat_template of tokenizer_config.json: a template, or a list of { name, template }. */
  configured?: unknown;
  /** chat_template of chat_template.json, which processors had before: a template, or an object of them. */
  ofProcessor?: unknown;
}

/**
 * A model's templates, in transformers' order: files, which replace those of tokenizer_config.json as a whole, then
 * chat_template.json. null: there is none. @throws TypeError where an entry is no template
 */
export function modelTemplates(sources: TemplateSources): ModelTemplates | null {
  const { file, additional = {}, configured, ofProcessor } = sources;
  const files = { ...(typeof file === 'string' ? { [DEFAULT]: file } : {}), ...additional };
  if (Object.keys(files).length > 0) return byRole(files);
  return ofEntry(configured) ?? ofEntry(ofProcessor);
}

/** Templates by name: the default one and the others. */
function byRole(templates: NamedTemplates): ModelTemplates {
  const { [DEFAULT]: chatTemplate = null, ...namedTemplates } = templates;
  return { chatTemplate, ...(Object.keys(namedTemplates).length > 0 && { namedTemplates }) };
}

function ofEntry(entry: unknown): ModelTemplates | null {
  if (entry === undefined || entry === null) return null;
  if (typeof entry === 'string') return { chatTemplate: entry };
  if (typeof entry !== 'object')
    throw new TypeError('chat_template should be a string or a list of named templates');
  const pairs = Array.isArray(entry)
    ? (entry as ({ name?: unknown; template?: unknown } | null)[]).map((one) => [one?.name, one?.template])
    : Object.entries(entry);
  if (!pairs.every(([name, template]) => typeof name === 'string' && typeof template === 'string')) {
    throw new TypeError('chat_template should be a string or a list of named templates');
  }
  return pairs.length === 0 ? null : byRole(Object.fromEntries(pairs) as NamedTemplates);
}

/** chat_template of tokenizer_config.json for these templates, where one string does not hold them. */
export function configuredList({ chatTemplate, namedTemplates }: ModelTemplates): object[] | null {
  if (namedTemplates === undefined) return null;
  const all = { ...(chatTemplate === null ? {} : { [DEFAULT]: chatTemplate }), ...namedTemplates };
  return Object.entries(all).map(([name, template]) => ({ name, template }));
}

/** Sources of the templates that prompts are made with. */
export interface ChosenTemplates {
  /** null: the model has none. */
  plain: string | null;
  /** For conversations with functions. */
  withTools: string | null;
}

/**
 * The templates that transformers would choose: tool_use where functions are given, default otherwise.
 * @param choice name of a template, or a path to a file, which is then used for all; undefined: as above
 * @throws ChatTemplateError where there is none to choose
 */
export function chooseTemplates(templates: ModelTemplates, choice?: string): ChosenTemplates {
  const { chatTemplate, namedTemplates = {} } = templates;
  if (choice !== undefined) {
    const chosen = templateCalled(templates, choice);
    return { plain: chosen, withTools: chosen };
  }
  const names = Object.keys(namedTemplates);
  if (chatTemplate === null && names.length > 0 && !Object.hasOwn(namedTemplates, TOOL_USE)) {
    throw new ChatTemplateError(
      says`The model has several chat templates and none is called default: choose one with ${OPTION} (${names.join(', ')}).`,
    );
  }
  const ofTools = Object.hasOwn(namedTemplates, TOOL_USE) ? namedTemplates[TOOL_USE]! : null;
  return { plain: chatTemplate, withTools: ofTools ?? chatTemplate };
}

function templateCalled({ chatTemplate, namedTemplates = {} }: ModelTemplates, choice: string): string {
  if (choice === DEFAULT && chatTemplate !== null) return chatTemplate;
  if (Object.hasOwn(namedTemplates, choice)) return namedTemplates[choice]!;
  try {
    return readFileSync(choice, 'utf8');
  } catch (error) {
    const names = [...(chatTemplate === null ? [] : [DEFAULT]), ...Object.keys(namedTemplates)];
    const known =
      names.length === 0 ? 'The model has none of its own.' : `The model has ${names.join(', ')}.`;
    throw new ChatTemplateError(
      says`${OPTION} ${JSON.stringify(choice)} is neither a file that can be read nor a template of the model. ${known}`,
      { cause: error },
    );
  }
}

/** Path of the folder with further templates. */
export const additionalFolder = (directory: string) => join(directory, ADDITIONAL_FOLDER);
