package accounts

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands/keep/inbox"
	"flagledger/commands/notify"
	"flagledger/http/rest"
	"flagledger/queries"
)

type deviceBody struct {
	DeviceToken string         `json:"deviceToken" example:"fYx2QkqzR0uJ:APA91bHb3dC9"`
	DeviceName  string         `json:"deviceName" example:"Ada's phone"`
	DeviceType  string         `json:"deviceType" enum:"ios,android,web" example:"android"`
	CreatedAt   rest.Timestamp `json:"createdAt"`
	LastSeenAt  rest.Timestamp `json:"lastSeenAt" doc:"When the token was last registered"`
}

func showDevice(d inbox.Device) deviceBody {
	return deviceBody{
		DeviceToken: d.Token,
		DeviceName:  d.Name,
		DeviceType:  d.Type,
		CreatedAt:   rest.Timestamp(d.CreatedAt),
		LastSeenAt:  rest.Timestamp(d.LastSeenAt),
	}
}

type newDeviceBody struct {
	DeviceToken string `json:"deviceToken" minLength:"1" maxLength:"1024" doc:"FCM's registration token" example:"fYx2QkqzR0uJ:APA91bHb3dC9"`
	DeviceName  string `json:"deviceName,omitempty" maxLength:"200" example:"Ada's phone"`
	DeviceType  string `json:"deviceType" enum:"ios,android,web" example:"android"`
}

const devicesRoute = "/api/v1/notifications/device-tokens"

func (a *API) addDevices(tag string) {
	const path = devicesRoute
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Person},
		rest.Operation("GET", path, "list-device-tokens", tag, "The devices that the caller's notifications are pushed to"),
		func(ctx context.Context, in *rest.PageInput) (*rest.ListOutput[deviceBody], error) {
			devices, err := a.Inbox.Devices(ctx, rest.PrincipalOf(ctx).Claims.UserID)
			left := devices[min(in.Offset, len(devices)):]
			if in.Limit > 0 {
				left = left[:min(in.Limit, len(left))]
			}
			return rest.ListResponse(ctx, *in, &queries.List[inbox.Device]{Rows: left, Total: len(devices)}, err, showDevice)
		},
	)
	add := rest.Operation("POST", path, "register-device-token", tag, "Push the caller's notifications to a device")
	add.Description = "A token that the caller registered before is updated (200); a token of another person is " +
		"reassigned to the caller. If the person has too many devices, the one not seen for the longest time is removed."
	add.DefaultStatus = http.StatusCreated
	known := &huma.Response{Description: "The caller had registered the token before"}
	add.Responses = map[string]*huma.Response{"200": known} // the legacy path has it too
	rest.Register(a.Core, rest.Access{Who: rest.Person}, add, a.registerDevice)
	known.Content = add.Responses["201"].Content
	remove := rest.Operation("DELETE", path+"/{token}", "remove-device-token", tag,
		"Stop pushing notifications to a device")
	remove.DefaultStatus = http.StatusNoContent
	rest.Register(a.Core, rest.Access{Who: rest.Person}, remove, func(ctx context.Context, in *struct {
		Token string `path:"token" example:"fYx2QkqzR0uJ:APA91bHb3dC9"`
	}) (*rest.NoContent, error) {
		return &rest.NoContent{}, a.Inbox.RemoveDevice(ctx, rest.PrincipalOf(ctx).Claims.UserID, in.Token)
	})
}

type deviceOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     deviceBody
}

func (a *API) registerDevice(ctx context.Context, in *struct{ Body newDeviceBody }) (*deviceOutput, error) {
	d := inbox.Device{Token: in.Body.DeviceToken, Name: in.Body.DeviceName, Type: in.Body.DeviceType}
	if err := rest.AddBodyErrors(ctx, notify.CheckDevice(d.Token, d.Name, d.Type)); err != nil {
		return nil, err
	}
	d, isNew, err := a.Inbox.Register(ctx, rest.PrincipalOf(ctx).Claims.UserID, d)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return &deviceOutput{status, rest.PublicPath(ctx, devicesRoute+"/"+url.PathEscape(d.Token)), showDevice(d)}, nil
}
