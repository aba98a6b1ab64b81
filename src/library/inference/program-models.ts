import { closestName } from '../../../base/did-you-mean.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import { inPlainNames } from '../../options/flag-names.js';
import { fromText } from '../../options/from-text.js';
import { optionCalled } from '../../options/old-names.js';
import { OPTION_NAMES, optionOf } from '../../options/table.js';
import { loadModels, type NamedModel } from '../../serving/load-models.js';
import type { ModelOptions } from '../../serving/model-options.js';
import type { LoadPlan, ModelSource, ServedVersion } from '../../serving/repository/model-source.js';
import { textVersion } from '../../serving/repository/text-version.js';
import { UNOBSERVED } from '../../serving/request-observer.js';
import { checkModelOptions } from '../options/model-options.js';

/** Identity of every load of a model that a program names: its options stay what they are. */
export const GIVEN = 'given by the program';

/** Loads models of texts, which share the memory there is. @throws as Skein.load */
export async function loadTexts(models: readonly NamedModel[]): Promise<ServedVersion[]> {
  for (const { options } of models) checkModelOptions(options);
  const loaded = await loadModels(models).catch((error: unknown) => {
    throw inPlainNames(error);
  });
  return loaded.map((one, i) => textVersion(models[i]!.name, '1', one, null, UNOBSERVED));
}

/** A model that a program names with its options, to be reloaded. */
export function givenSource(name: string, options: ModelOptions): ModelSource {
  return {
    plan: async (endpoint, { config, files, values, addedInstances }): Promise<LoadPlan> => {
      const isChanged = config !== undefined || files !== undefined || addedInstances > 0;
      if (isChanged || Object.keys(values).length > 0) {
        throw new InferError(`'${name}' was given with its options, and takes no parameters`, 'invalid');
      }
      return {
        identity: GIVEN,
        versions: ['1'],
        start: async () => (await loadTexts([{ name: endpoint, options }]))[0]!,
      };
    },
  };
}

/** A model of texts in a folder of a repository, with the parameters of its configuration as options. */
export async function loadTextFolder(
  name: string,
  version: string,
  directory: string,
  parameters: Readonly<Record<string, string>>,
): Promise<ServedVersion> {
  const { model = directory, ...texts } = parameters;
  const options = { ...optionsOfTexts(name, texts), model };
  checkModelOptions(options);
  const [loaded] = await loadModels([{ name, options }]);
  return textVersion(name, version, loaded!, null, UNOBSERVED);
}

/** @throws ParameterError for a name that is no option */
function optionsOfTexts(model: string, texts: Readonly<Record<string, string>>): Record<string, unknown> {
  const options = Object.entries(texts).map(([key, text]) => {
    const name = optionCalled(key);
    if (name === null) {
      const meant = closestName(key, OPTION_NAMES);
      const hint = meant === null ? '' : `; did you mean ${meant}?`;
      throw new ParameterError(key, `The parameters of ${model} have no option ${key}${hint}`);
    }
    const option = optionOf(name);
    return [name, option.values.kind === 'list' ? text.split(',') : fromText(option, text)] as const;
  });
  return Object.fromEntries(options);
}
