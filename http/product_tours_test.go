package http_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

const fresh = `{"completed":false,"completed_at":null,"created_at":null,"updated_at":null}`

func tourPath(userID, key string) string { return "/api/v1/users/" + userID + "/product-tours/" + key }

func TestProductTours(t *testing.T) {
	nodetest.Cases{
		"a tour is completed and reset": func(t *testing.T, me *nodetest.Client) {
			path := tourPath(me.UserID, "flags@2")
			nodetest.Same(t, "a tour that was not begun", me.Call("GET", path, nil).Want(200).JSON(),
				map[string]any{"completed": false, "completed_at": nil, "created_at": nil, "updated_at": nil})
			done := me.Call("PUT", path, `{"completed":true,"completed_at":"2026-03-14T17:09:26.535+02:00"}`).Want(200)
			done.Shows(map[string]any{"completed": true, "completed_at": "2026-03-14T15:09:26.535Z"})
			nodetest.Members(t, "the answer", done.Object(), "completed", "completed_at", "created_at", "updated_at")
			nodetest.Same(t, "the same by its old path, with @ escaped",
				me.Call("GET", "/v1/users/"+me.UserID+"/product-tours/flags%402", nil).Want(200).JSON(), done.JSON())
			me.Call("PUT", path, `{"completed":true}`).Want(200).Shows(map[string]any{"created_at": done.Object()["created_at"]})
			me.Call("PUT", path, `{"completed":false,"completed_at":null}`).
				Want(200).
				Shows(map[string]any{"completed": false, "completed_at": nil, "created_at": done.Object()["created_at"]})
			for range 2 {
				me.Call("DELETE", path, nil).Want(204)
			}
			nodetest.Same(t, "a tour that was reset", string(me.Call("GET", path, nil).Want(200).Body), fresh)
		},
		"a key is one, escaped or not, and each person has their own": func(t *testing.T, me *nodetest.Client) {
			me.Call("PUT", tourPath(me.UserID, "a%40b:c"), `{"completed":true}`).Want(200)
			me.Call("GET", tourPath(me.UserID, "a@b%3Ac"), nil).Want(200).Shows(map[string]any{"completed": true})
			me.Call("GET", tourPath(me.UserID, "a%2540b%3Ac"), nil).Refused(422, "tourKey") // which is the key a%40b:c
			nodetest.Same(t, "a key with an escape in it",
				string(me.Call("GET", tourPath(me.UserID, "a@b"), nil).Want(200).Body), fresh)
			other := me.Join("viewer").Stay()
			nodetest.Same(t, "somebody else's", string(other.Call("GET", tourPath(other.UserID, "a@b:c"), nil).Want(200).Body),
				fresh)
		},
		"an answer is repeated with its Idempotency-Key": func(t *testing.T, me *nodetest.Client) {
			path, key := tourPath(me.UserID, "once"), uuid.NewString()
			first := me.Call("PUT", path, `{"completed":true}`, "Idempotency-Key", key).Want(200)
			me.Call("DELETE", path, nil).Want(204)
			replayed := me.Call("PUT", path, `{"completed":true}`, "Idempotency-Key", key).Want(200)
			nodetest.Same(t, "the answer", []string{string(replayed.Body), replayed.Header.Get("Idempotent-Replayed")},
				[]string{string(first.Body), "true"})
			nodetest.Same(t, "the tour", string(me.Call("GET", path, nil).Want(200).Body), fresh)
			me.Call("PUT", path, `{"completed":false}`, "Idempotency-Key", key).Refused(422, "Idempotency-Key")
		},
		"an admin of a tenant of theirs, and nobody else": func(_ *testing.T, me *nodetest.Client) {
			viewer, developer, stranger := me.Join("viewer").Stay(), me.Join("developer"), me.Service.SignUp(nodetest.Address())
			path := tourPath(viewer.UserID, "tour")
			me.Call("PUT", path, `{"completed":true}`).Want(200)
			viewer.Call("GET", path, nil).Want(200).Shows(map[string]any{"completed": true})
			for _, c := range []*nodetest.Client{developer, stranger} {
				c.Call("GET", path, nil).Refused(404)
				c.Call("PUT", path, `{"completed":3}`).Refused(404)
				c.Call("DELETE", path, nil).Refused(404)
			}
			me.Call("GET", tourPath(uuid.NewString(), "tour"), nil).Refused(404)
			me.Machine("flags:read").Call("GET", path, nil).Refused(403)
			viewer.Call("GET", tourPath(me.UserID, "tour"), nil).Refused(404)
			me.Call("DELETE", usersPath(me, viewer.UserID), nil).Want(204)
			me.Call("GET", path, nil).Refused(404)
		},
		"what is wrong is told at once": func(_ *testing.T, me *nodetest.Client) {
			path := tourPath(me.UserID, "tour")
			me.Call("PUT", path, `{}`).Refused(422, "completed")
			me.Call("PUT", path, `{"completed":null}`).Refused(422, "completed")
			me.Call("PUT", path, `{"completed":false,"completed_at":"2026-03-14T15:09:26Z"}`).Refused(422, "completed_at")
			me.Call("PUT", path, `{"completed":true,"completed_at":"yesterday"}`).Refused(422, "completed_at")
			me.Call("PUT", path, `{"completed":true,"completed_at":"9999-12-31T23:59:59-10:00"}`).Refused(422, "completed_at")
			me.Call("PUT", tourPath(me.UserID, "a%2Fb"), `{"completed":true,"userId":"x"}`).Refused(422, "tourKey", "userId")
			me.Call("GET", tourPath(me.UserID, strings.Repeat("k", 129)), nil).Refused(422, "tourKey")
		},
	}.Run(t)
}
