import type { ModelDirectory } from '../../serving/model-directory.js';
import type { ServedModel } from '../../serving/served-model.js';

const LATEST = ':latest';
/** Hosts of the Hugging Face hub, with which this API's clients name its models. */
const HUB_HOST = /^(?:https?:\/\/)?(?:hf\.co|huggingface\.co)\//i;

/** The name that this API has for a model: a name without a tag has the tag `latest`. */
export function taggedName(name: string): string {
  return name.includes(':') ? name : `${name}${LATEST}`;
}

/** Spellings under which a model may be served or lie in the folder, the likeliest first: `m:latest` is `m` too. */
export function spellingsOf(name: string): string[] {
  const ofHub = name.replace(HUB_HOST, '');
  const names = ofHub === name ? [name] : [ofHub, name];
  return names.flatMap((one) =>
    one.endsWith(LATEST)
      ? [one, one.slice(0, -LATEST.length)]
      : one.includes(':')
        ? [one]
        : [one, taggedName(one)],
  );
}

/** The served model of a name; undefined: none is. */
export function servedUnder(models: ModelDirectory, name: string): ServedModel | undefined {
  for (const spelling of spellingsOf(name)) {
    const model = models.find(spelling);
    if (model !== undefined) return model;
  }
  return undefined;
}
