// Names the modules of the reference as programs import them.
import { Converter, ReflectionKind } from 'typedoc';

export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const folder = module.name.replace('adapters/', '');
      module.name = folder === 'index' ? 'gen-client' : `gen-client/${folder}`;
    }
  });
}
