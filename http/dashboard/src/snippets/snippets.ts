import type { FlagType } from '../queries/flag';

/** What a program needs to evaluate a flag. */
export type SnippetRequest = {
  service: string;
  key: string;
  type: FlagType;
  /** A browser key for web, a server key for all others. It names the environment. */
  evaluationKey: string;
};

/** Names of methods that evaluate, and values that they return if the service cannot be reached. */
const methods: Record<'go' | 'javascript' | 'python' | 'java' | 'dotnet', Record<FlagType, [string, string]>> = {
  go: {
    boolean: ['Boolean', 'false'],
    string: ['String', '""'],
    number: ['Float', '0'],
    json: ['Object', 'nil'],
  },
  javascript: {
    boolean: ['getBooleanValue', 'false'],
    string: ['getStringValue', "''"],
    number: ['getNumberValue', '0'],
    json: ['getObjectValue', '{}'],
  },
  python: {
    boolean: ['get_boolean_value', 'False'],
    string: ['get_string_value', '""'],
    number: ['get_float_value', '0.0'],
    json: ['get_object_value', '{}'],
  },
  java: {
    boolean: ['getBooleanValue', 'false'],
    string: ['getStringValue', '""'],
    number: ['getDoubleValue', '0.0'],
    json: ['getObjectValue', 'new Value()'],
  },
  dotnet: {
    boolean: ['GetBooleanValueAsync', 'false'],
    string: ['GetStringValueAsync', '""'],
    number: ['GetDoubleValueAsync', '0'],
    json: ['GetObjectValueAsync', 'new Value()'],
  },
};

export type Language = keyof typeof snippets;

/** Programs that evaluate a flag, by language. Tests run those in Go, JavaScript and curl. */
export const snippets = {
  go({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.go[type];
    return `// go get github.com/open-feature/go-sdk github.com/open-feature/go-sdk-contrib/providers/ofrep
package main

import (
	"context"
	"fmt"

	"github.com/open-feature/go-sdk-contrib/providers/ofrep"
	"github.com/open-feature/go-sdk/openfeature"
)

func main() {
	provider := ofrep.NewProvider("${service}", ofrep.WithBearerToken("${evaluationKey}"))
	if err := openfeature.SetProviderAndWait(provider); err != nil {
		panic(err)
	}
	flags := openfeature.NewDefaultClient()

	user := openfeature.NewEvaluationContext("user-42", map[string]any{"plan": "pro"})
	value := flags.${method}(context.Background(), "${key}", ${fallback}, user)
	fmt.Println(value)
}
`;
  },

  javascript({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.javascript[type];
    return `// npm install @openfeature/server-sdk @openfeature/ofrep-provider
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

await OpenFeature.setProviderAndWait(
  new OFREPProvider({
    baseUrl: '${service}',
    headers: [['Authorization', 'Bearer ${evaluationKey}']],
  }),
);
const user = { targetingKey: 'user-42', plan: 'pro' };
const value = await OpenFeature.getClient().${method}('${key}', ${fallback}, user);
console.log(value);
`;
  },

  web({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.javascript[type];
    return `// npm install @openfeature/web-sdk @openfeature/ofrep-web-provider
import { OpenFeature } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';

await OpenFeature.setContext({ targetingKey: 'user-42', plan: 'pro' });
await OpenFeature.setProviderAndWait(
  new OFREPWebProvider({
    baseUrl: '${service}',
    headers: [['Authorization', 'Bearer ${evaluationKey}']],
  }),
);
const value = OpenFeature.getClient().${method}('${key}', ${fallback});
console.log(value);
`;
  },

  python({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.python[type];
    return `# pip install openfeature-sdk openfeature-provider-ofrep
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

headers = {"Authorization": "Bearer ${evaluationKey}"}
api.set_provider(OFREPProvider("${service}", headers_factory=lambda: headers))
user = EvaluationContext("user-42", {"plan": "pro"})
${type === 'number' ? '# It is get_integer_value for whole numbers.\n' : ''}print(api.get_client().${method}("${key}", ${fallback}, user))
`;
  },

  java({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.java[type];
    return `// Maven: dev.openfeature:sdk and dev.openfeature.contrib.providers:ofrep
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.openfeature.contrib.providers.ofrep.OfrepProvider;
import dev.openfeature.contrib.providers.ofrep.OfrepProviderOptions;
import dev.openfeature.sdk.*;

public class App {
  public static void main(String[] args) {
    var options = OfrepProviderOptions.builder()
        .baseUrl("${service}")
        .headers(ImmutableMap.of("Authorization", ImmutableList.of("Bearer ${evaluationKey}")))
        .build();
    OpenFeatureAPI.getInstance().setProviderAndWait(OfrepProvider.constructProvider(options));
    var user = new MutableContext("user-42").add("plan", "pro");
    System.out.println(OpenFeatureAPI.getInstance().getClient().${method}("${key}", ${fallback}, user));
  }
}
`;
  },

  dotnet({ service, key, type, evaluationKey }: SnippetRequest): string {
    const [method, fallback] = methods.dotnet[type];
    return `// dotnet add package OpenFeature.Providers.Ofrep
using OpenFeature;
using OpenFeature.Model;
using OpenFeature.Providers.Ofrep;
using OpenFeature.Providers.Ofrep.Configuration;

await Api.Instance.SetProviderAsync(new OfrepProvider(new OfrepOptions("${service}")
{
    Headers = new() { ["Authorization"] = "Bearer ${evaluationKey}" },
}));
var user = EvaluationContext.Builder().SetTargetingKey("user-42").Set("plan", "pro").Build();
Console.WriteLine(await Api.Instance.GetClient().${method}("${key}", ${fallback}, user));
`;
  },

  curl({ service, key, evaluationKey }: SnippetRequest): string {
    return `curl -s ${service}/ofrep/v1/evaluate/flags/${key} \\
  -H 'X-API-Key: ${evaluationKey}' \\
  -H 'Content-Type: application/json' \\
  -d '{"context":{"targetingKey":"user-42","plan":"pro"}}'
`;
  },
};
