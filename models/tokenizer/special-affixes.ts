import { type ComponentJson, flattenComponents, type TokenizerJson } from './tokenizer-json.js';

/** Ids before and after a text that is encoded with special tokens. */
export interface SpecialAffixes {
  prefix: number[];
  suffix: number[];
}

/**
 * Ids that the post-processor puts around one text, corrected by add_bos_token and add_eos_token of
 * tokenizer_config.json where they are given: published models have changed one and forgotten the other, and people
 * edit the flag.
 */
export function specialAffixes(
  json: TokenizerJson,
  config: Record<string, unknown>,
  bosTokenId: number | null,
  eosTokenId: number | null,
): SpecialAffixes {
  const affixes: SpecialAffixes = { prefix: [], suffix: [] };
  for (const part of flattenComponents(json.post_processor)) {
    if (part.type === 'TemplateProcessing') addTemplate(part, affixes);
    if (part.type === 'BertProcessing' || part.type === 'RobertaProcessing') {
      const [cls, sep] = [part.cls, part.sep] as [[string, number], [string, number]];
      affixes.prefix.push(cls[1]);
      affixes.suffix.unshift(sep[1]);
    }
  }
  if (bosTokenId !== null) {
    if (config.add_bos_token === true && !affixes.prefix.includes(bosTokenId)) {
      affixes.prefix.unshift(bosTokenId);
    }
    if (config.add_bos_token === false) affixes.prefix = affixes.prefix.filter((id) => id !== bosTokenId);
  }
  if (eosTokenId !== null) {
    if (config.add_eos_token === true && !affixes.suffix.includes(eosTokenId)) {
      affixes.suffix.push(eosTokenId);
    }
    if (config.add_eos_token === false) affixes.suffix = affixes.suffix.filter((id) => id !== eosTokenId);
  }
  return affixes;
}

interface TemplateItem {
  SpecialToken?: { id: string };
  Sequence?: { id: string };
}

function addTemplate(part: ComponentJson, affixes: SpecialAffixes): void {
  const specials = part.special_tokens as Record<string, { ids: number[] }> | undefined;
  const before: number[] = [];
  const after: number[] = [];
  let target = before;
  for (const item of part.single as TemplateItem[]) {
    if (item.Sequence) target = after;
    if (item.SpecialToken) target.push(...(specials?.[item.SpecialToken.id]?.ids ?? []));
  }
  affixes.prefix.unshift(...before);
  affixes.suffix.push(...after);
}
