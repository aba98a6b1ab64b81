import type { Guide } from '../../../callbacks/guide.js';

/** A format of a structural tag, as the engine's guides have it. */
export type TagFormat = { readonly type: string } & { readonly [field: string]: unknown };

export const text = (value: string): TagFormat => ({ type: 'const_string', value });
export const sequence = (...elements: TagFormat[]): TagFormat => ({ type: 'sequence', elements });
export const either = (...elements: TagFormat[]): TagFormat => ({ type: 'or', elements });

interface OlderTag {
  triggers: string[];
  structures: { begin: string; schema?: unknown; end: string }[];
}

/** Converts a checked guide to a format, so that another format can stand before or next to it. */
export function guideAsFormat({ type, guide }: Guide): TagFormat {
  switch (type) {
    case 'json':
      return { type: 'json_schema', json_schema: { type: 'object' } };
    case 'json_schema':
      return { type: 'json_schema', json_schema: JSON.parse(guide) };
    case 'regex':
      return { type: 'regex', pattern: guide };
    case 'choice':
      return either(...(JSON.parse(guide) as string[]).map(text));
    case 'ebnf_grammar':
      return { type: 'grammar', grammar: guide };
    case 'structural_tag':
      return structuralFormat(JSON.parse(guide) as { format: TagFormat } | OlderTag);
  }
}

function structuralFormat(tag: { format: TagFormat } | OlderTag): TagFormat {
  if (!('structures' in tag)) return tag.format;
  const tags = tag.structures.map(({ begin, schema, end }) => {
    return { type: 'tag', begin, content: { type: 'json_schema', json_schema: schema ?? true }, end };
  });
  return { type: 'triggered_tags', triggers: tag.triggers, tags };
}
